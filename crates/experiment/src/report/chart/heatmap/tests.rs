use super::*;

/// Two nodes of two CPUs: idle, one task, three tasks, not known.
fn heat() -> Heat {
    let row = |cpu: u32| HeatRow { cpus: vec![cpu], node: Some(cpu / 2) };
    let means = [Some(0.0), Some(1.0), Some(3.0), None].iter().flat_map(|mean| vec![*mean; COLUMNS]).collect();
    Heat {
        what: What::Queue,
        from: 0,
        to: 1_000_000_000,
        rows: (0..4).map(row).collect(),
        columns: COLUMNS,
        cells: Cells::Means(means),
        told: true,
    }
}

fn pixels(png: &[u8]) -> (usize, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("its size is known")];
    let info = reader.next_frame(&mut pixels).expect("whole");
    (info.width as usize, pixels)
}

#[test]
fn a_png_has_each_cell_in_its_colour() {
    let heat = heat();
    let scale = Scale::of([&heat].into_iter());
    let png = Picture { title: "four CPUs", about: "t.arrows", heat: &heat, scale }.png();
    let (width, pixels) = pixels(&png);
    // The middle of each row, two pixels a unit.
    let at = |row: usize| {
        let y = 2 * (TOP as usize + HIGHEST * row + HIGHEST / 2);
        let first = 3 * (y * width + 2 * (LEFT as usize + 450));
        [pixels[first], pixels[first + 1], pixels[first + 2]]
    };
    assert_eq!([at(0), at(1), at(2), at(3)], [[255; 3], scale.colour(1.0), scale.colour(3.0), UNKNOWN]);
    assert!(pixels.chunks(3).filter(|p| p == &[0x1c, 0x21, 0x27]).count() > 200, "the title is written");
}

#[test]
fn an_svg_names_cpus_nodes_scale_and_time() {
    let heat = heat();
    let picture = Picture { title: "a & b", about: "", heat: &heat, scale: Scale::of([&heat].into_iter()) };
    let svg = picture.svg();
    for part in [
        "cpu 3",
        "node 1",
        "class=\"node\"",
        "runnable tasks",
        ">2<",
        "time since the start, ms",
        "not known",
        "1.11 ms",
        "a &amp; b",
        "xmlns=",
        "data:image/png;base64,",
    ] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    assert!(!picture.inline().contains("xmlns"), "a page refers to nothing outside");
}

#[test]
fn times_have_three_digits() {
    let cases = [(1_111_111.1, "1.11 ms"), (66_666_666.0, "66.7 ms"), (250e6, "250 ms"), (1.0, "1 ns"), (2e9, "2 s")];
    for (ns, text) in cases {
        assert_eq!(duration(ns), text);
    }
}
