use super::*;

/// Two nodes of two CPUs: idle, one task, three tasks, not known.
fn picture() -> Picture {
    let values = [Some(0.0), Some(1.0), Some(3.0), None].iter().flat_map(|mean| vec![*mean; COLUMNS]).collect();
    Picture {
        title: "a & b".to_owned(),
        about: "t.arrows".to_owned(),
        rows: (0..4).map(|cpu| Row::Cpu(cpu, Some(cpu / 2))).collect(),
        columns: COLUMNS,
        cells: Cells::Values { values, scale: Scale::powers(4.0), label: "runnable tasks".to_owned() },
        span: (0, 1_000_000_000),
    }
}

fn pixels(png: &[u8]) -> (usize, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("its size is known")];
    let info = reader.next_frame(&mut pixels).expect("whole");
    (info.width as usize, pixels)
}

/// The colours in the middle of the four rows of a PNG, two pixels a unit.
fn middles(png: &[u8]) -> [[u8; 3]; 4] {
    let (width, pixels) = pixels(png);
    std::array::from_fn(|row| {
        let y = 2 * (TOP as usize + HIGHEST * row + HIGHEST / 2);
        let first = 3 * (y * width + 2 * (LEFT as usize + 450));
        [pixels[first], pixels[first + 1], pixels[first + 2]]
    })
}

#[test]
fn a_png_has_each_cell_in_its_colour() {
    let png = picture().png();
    let scale = Scale::powers(4.0);
    assert_eq!(middles(&png), [[255; 3], scale.colour(1.0), scale.colour(3.0), UNKNOWN]);
    let (width, pixels) = pixels(&png);
    let heading = pixels.chunks(3).take(width * 2 * 30);
    assert!(heading.filter(|p| p == &[0x1c, 0x21, 0x27]).count() > 40, "the title is written");
}

#[test]
fn kinds_have_their_colours_and_names() {
    let kinds = [None, Some(0), Some(7), Some(3)].iter().flat_map(|kind| vec![*kind; COLUMNS]).collect();
    let names = vec![(0, "wake 5".to_owned()), (7, "numa 2".to_owned())];
    let picture = Picture { cells: Cells::Kinds { kinds, names }, ..picture() };
    assert_eq!(middles(&picture.png()), [[255; 3], KINDS[0], KINDS[7], KINDS[3]]);
    let svg = picture.svg();
    assert!(svg.contains("wake 5") && svg.contains("numa 2") && !svg.contains("not known"), "{svg}");
}

#[test]
fn an_svg_names_cpus_nodes_scale_and_time() {
    let picture = picture();
    let svg = picture.svg();
    for part in [
        "cpu 3",
        "node 1",
        "class=\"node\"",
        "runnable tasks",
        ">2<",
        "time since the start, s",
        "not known",
        "t.arrows",
        "a &amp; b",
        "xmlns=",
        "data:image/png;base64,",
    ] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    assert!(!picture.inline().contains("xmlns"), "a page refers to nothing outside");
}

#[test]
fn rows_of_nodes_are_not_set_apart_by_node() {
    let picture = Picture { rows: (0..4).map(Row::Node).collect(), ..picture() };
    let svg = picture.svg();
    assert!(svg.contains("node 3") && !svg.contains("class=\"node\""), "{svg}");
}
