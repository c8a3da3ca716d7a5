//! The page, embedded when the command was built; nothing if it was built without Node.

/// Name, media type and contents.
pub(crate) type Asset = (&'static str, &'static str, &'static [u8]);

const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The file of this name.
pub(crate) fn asset(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|(own, ..)| *own == name)
}

/// Whether the page is there.
#[must_use]
pub fn have_page() -> bool {
    !ASSETS.is_empty()
}
