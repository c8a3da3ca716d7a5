//! The archive that Linux unpacks as its first file system: cpio in the format "newc"
//! (Documentation/driver-api/early-userspace/buffer-format.rst in the kernel's sources).

/// The type bits of a mode.
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const CHARACTER: u32 = 0o020_000;
const LINK: u32 = 0o120_000;

/// An archive that is being written.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    folders: Vec<String>,
    entries: u32,
}

impl Archive {
    /// Adds a file with the folders above it. The path has no leading slash.
    pub(crate) fn file(&mut self, path: &str, permissions: u32, contents: &[u8]) {
        self.folders_above(path);
        self.entry(path, REGULAR | permissions, (0, 0), contents);
    }

    /// Adds a folder with those above it.
    pub(crate) fn folder(&mut self, path: &str) {
        if !self.folders.iter().any(|known| known == path) {
            self.folders_above(path);
            self.folders.push(path.to_owned());
            self.entry(path, DIRECTORY | 0o755, (0, 0), &[]);
        }
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.folders_above(path);
        self.entry(path, LINK | 0o777, (0, 0), target.as_bytes());
    }

    /// Adds a character device.
    pub(crate) fn device(&mut self, path: &str, number: (u32, u32)) {
        self.folders_above(path);
        self.entry(path, CHARACTER | 0o600, number, &[]);
    }

    /// The finished archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn folders_above(&mut self, path: &str) {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
    }

    /// All owners and times are 0: equal contents make equal bytes.
    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), contents: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(contents.len()).expect("nothing of 4 GiB is put into an initramfs");
        let name = path.len() as u32 + 1;
        let (inode, owner, group, links, time) = (self.entries, 0, 0, 1, 0);
        let of_file_system = (0, 0);
        self.bytes.extend(b"070701");
        for field in [
            inode,
            mode,
            owner,
            group,
            links,
            time,
            size,
            of_file_system.0,
            of_file_system.1,
            device.0,
            device.1,
            name,
            0,
        ] {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(path.bytes().chain([0]));
        self.pad();
        self.bytes.extend(contents);
        self.pad();
    }

    /// Names and contents end at a multiple of four.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_header_of_hexadecimal_fields_a_name_and_contents() {
        let mut archive = Archive::default();
        archive.file("init", 0o755, b"#!");
        let bytes = archive.finish();
        let header = "070701\
                      00000001000081ed0000000000000000000000010000000000000002\
                      00000000000000000000000000000000\
                      0000000500000000";
        assert_eq!(&bytes[..110], header.as_bytes());
        assert_eq!(&bytes[110..116], b"init\0\0", "116 is a multiple of four, where the padding adds a byte");
        assert_eq!(&bytes[116..120], b"#!\0\0");
        assert!(bytes[120..].starts_with(b"070701") && bytes.ends_with(b"TRAILER!!!\0\0\0\0"));
        assert!(bytes.len().is_multiple_of(4));
    }

    #[test]
    fn folders_come_before_what_they_hold_and_once() {
        let mut archive = Archive::default();
        archive.file("lib64/a/one", 0o644, b"1");
        archive.file("lib64/a/two", 0o644, b"2");
        archive.device("dev/console", (5, 1));
        archive.link("init", "bin/one");
        let text = String::from_utf8(archive.finish()).unwrap();
        let at = |name: &str| text.find(&format!("{name}\0")).unwrap();
        assert!(at("lib64") < at("lib64/a") && at("lib64/a") < at("lib64/a/one") && at("dev") < at("dev/console"));
        assert_eq!(text.matches("lib64/a\0").count(), 1);
        assert!(text.contains("000000050000000100"), "the console is device 5:1");
        assert!(text.contains("init\0\0bin/one\0"), "a link holds the path that it leads to");
    }
}
