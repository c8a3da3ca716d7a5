//! The PNG format.

/// Pixels, three bytes each, as a PNG.
pub fn encode(width: u32, height: u32, pixels: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::Balanced);
    // Rows repeat, so a filter that looks at the row above saves more than one that looks at the pixel to the left.
    encoder.set_filter(png::Filter::Up);
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(pixels));
    written.expect("a picture of at least one pixel is written into memory");
    out
}
