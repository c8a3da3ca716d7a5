//! A page written by kernel 6.18 on x86-64. A process named `fixture` and its child `echo` wake each other through
//! pipes, pinned to CPU 0; then both sleep for 200 ms (longer than the 27 bits of time in a record can express); then
//! the child ends.

use schedlab_base::{Event, Payload};
use schedlab_trace::format::{Decoder, Format};
use schedlab_trace::ring_buffer::PageLayout;

const PAGE: &[u8] = include_bytes!("data/ring_buffer/page.bin");
const HEADER_PAGE: &str = include_str!("data/ring_buffer/header_page");
const FORMATS: [&str; 4] = [
    include_str!("data/ring_buffer/sched_switch.format"),
    include_str!("data/ring_buffer/sched_waking.format"),
    include_str!("data/ring_buffer/sched_process_fork.format"),
    include_str!("data/ring_buffer/sched_process_exit.format"),
];

fn events(page: &[u8]) -> (Vec<Event>, Vec<(i32, String)>) {
    let layout = PageLayout::parse(HEADER_PAGE, false).unwrap();
    let mut decoder = Decoder::new(FORMATS.map(|text| Format::parse(text).unwrap())).unwrap();
    let mut names = Vec::new();
    let page = layout.page(page).unwrap();
    assert_eq!(page.lost, None);
    let events = page
        .records()
        .map(|record| {
            let (time, raw) = record.unwrap();
            decoder.decode(0, time, raw, |name| names.push((name.tid, name.comm.clone()))).unwrap()
        })
        .collect();
    (events, names)
}

#[test]
fn the_page_holds_the_events_of_two_processes() {
    let (events, names) = events(PAGE);
    let Payload::Fork { parent, child } = events[0].what else { panic!("{:?}", events[0]) };
    let named = |tid: i32, comm: &str| names.iter().any(|(t, c)| *t == tid && c == comm);
    assert!(named(parent, "fixture") && named(child, "echo"), "{names:?} {parent} {child}");
    let wakes = |by: i32, of: i32| {
        let is = |e: &&Event| matches!(e.what, Payload::Waking { tid, waker, .. } if tid == of && waker == by);
        events.iter().filter(is).count()
    };
    assert_eq!((wakes(parent, child), wakes(child, parent)), (1, 7));
    let exited = |e: &Event| if let Payload::Exit { tid, .. } = e.what { Some(tid) } else { None };
    assert_eq!(events.iter().rev().find_map(exited), Some(child));
}

#[test]
fn times_go_on_over_a_time_extend() {
    let (events, _) = events(PAGE);
    assert!(events.windows(2).all(|pair| pair[0].time <= pair[1].time));
    let pause = events.windows(2).map(|pair| pair[1].time - pair[0].time).max().unwrap();
    assert!((200_000_000..1_000_000_000).contains(&pause), "the sleep of 200 ms shows: {pause} ns");
}

#[test]
fn changing_or_cutting_any_byte_of_a_page_does_no_harm() {
    let layout = PageLayout::parse(HEADER_PAGE, false).unwrap();
    let mut decoder = Decoder::new(FORMATS.map(|text| Format::parse(text).unwrap())).unwrap();
    let mut read = |bytes: &[u8]| {
        let Ok(page) = layout.page(bytes) else { return };
        for (time, raw) in page.records().map_while(Result::ok) {
            let _ = decoder.decode(0, time, raw, |_| {});
        }
    };
    for at in 0..PAGE.len() {
        read(&PAGE[..at]);
        for flip in [0x01, 0x1f, 0x80, 0xff] {
            let mut page = PAGE.to_vec();
            page[at] ^= flip;
            read(&page);
        }
    }
}
