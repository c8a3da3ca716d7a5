//! Where the fields of the kernel's structures are, by its BTF (Documentation/bpf/btf.rst).

/// The size of what follows a type of this kind, for `vlen` elements; `None` for an unknown kind.
fn extra(kind: u32, vlen: usize) -> Option<usize> {
    Some(match kind {
        // Forward declarations, pointers, qualifiers, functions, floats and type tags.
        2 | 7..=12 | 16 | 18 => 0,
        // Integers, variables and declaration tags.
        1 | 14 | 17 => 4,
        ARRAY => 12,
        STRUCT | UNION | DATASEC | ENUM64 => 12 * vlen,
        // Enumerations and prototypes.
        6 | 13 => 8 * vlen,
        _ => return None,
    })
}

const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const DATASEC: u32 = 15;
const ENUM64: u32 = 19;

/// The structures of a kernel.
pub(crate) struct Btf {
    bytes: Vec<u8>,
    strings: usize,
    /// Where each type begins; the first has number 1.
    types: Vec<usize>,
}

impl Btf {
    /// Reads `/sys/kernel/btf/vmlinux`. `None` if the bytes are something else.
    pub(crate) fn new(bytes: Vec<u8>) -> Option<Self> {
        let word = |at: usize| word(&bytes, at);
        if word(0)? & 0xffff != 0xeb9f {
            return None;
        }
        let header = word(4)? as usize;
        let [first, length, text] = [8, 12, 16].map(|at| word(at).map(|n| n as usize));
        let (mut at, strings) = (header.checked_add(first?)?, header.checked_add(text?)?);
        let end = at.checked_add(length?)?;
        let mut types = Vec::new();
        while at < end {
            let (kind, vlen) = kind_of(word(at + 4)?);
            types.push(at);
            at += 12 + extra(kind, vlen)?;
        }
        Some(Self { bytes, strings, types })
    }

    /// The offset in bytes of a field in a structure; `None` if there is no such structure or field.
    pub(crate) fn offset(&self, of: &str, field: &str) -> Option<u32> {
        let is_named = |at: usize| {
            let (kind, _) = kind_of(self.word(at + 4)?);
            (kind == STRUCT && self.text(self.word(at)?)? == of).then_some(at)
        };
        self.find(self.types.iter().find_map(|at| is_named(*at))?, field)
    }

    /// Looks for a field in the type that begins there, and in its members without a name: their fields are used as if
    /// they were its own.
    fn find(&self, at: usize, field: &str) -> Option<u32> {
        let info = self.word(at + 4)?;
        let (kind, vlen) = kind_of(info);
        if ![STRUCT, UNION].contains(&kind) {
            return None;
        }
        // With bit fields, the upper byte is the width.
        let mask = if info >> 31 == 1 { 0x00ff_ffff } else { u32::MAX };
        (0..vlen).find_map(|member| {
            let member = at + 12 + 12 * member;
            let [name, number, bits] = [0, 4, 8].map(|at| self.word(member + at));
            let offset = (bits? & mask) / 8;
            match self.text(name?)? {
                "" => Some(offset + self.find(*self.types.get((number? as usize).checked_sub(1)?)?, field)?),
                name => (name == field).then_some(offset),
            }
        })
    }

    fn word(&self, at: usize) -> Option<u32> {
        word(&self.bytes, at)
    }

    fn text(&self, at: u32) -> Option<&str> {
        let rest = self.bytes.get(self.strings + at as usize..)?;
        std::str::from_utf8(&rest[..rest.iter().position(|byte| *byte == 0)?]).ok()
    }
}

/// The kind of a type, and how many elements follow it.
fn kind_of(info: u32) -> (u32, usize) {
    ((info >> 24) & 0x1f, (info & 0xffff) as usize)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct s { int a; struct { int b; }; int c:3; }`, with the last two after 4 and 8 bytes.
    fn example() -> Vec<u8> {
        let strings = b"\0int\0s\0a\0b\0c\0";
        let [int, s, a, b, c] = [1u32, 5, 7, 9, 11];
        let kind = |kind: u32, vlen: u32| kind << 24 | vlen;
        let types: Vec<u32> = [
            vec![int, kind(1, 0), 4, 32],
            vec![0, kind(STRUCT, 1), 4, b, 1, 0],
            vec![s, 1 << 31 | kind(STRUCT, 3), 12, a, 1, 0, 0, 2, 32, c, 1, 3 << 24 | 64],
        ]
        .concat();
        let length = types.len() as u32 * 4;
        let header = [1 << 16 | 0xeb9f, 24, 0, length, length, strings.len() as u32];
        header.iter().chain(&types).flat_map(|word| word.to_ne_bytes()).chain(*strings).collect()
    }

    #[test]
    fn fields_are_found_in_nameless_members_and_among_bit_fields() {
        let btf = Btf::new(example()).unwrap();
        let offsets = ["a", "b", "c", "d"].map(|field| btf.offset("s", field));
        assert_eq!(offsets, [Some(0), Some(4), Some(8), None]);
        assert_eq!(btf.offset("t", "a"), None);
    }

    #[test]
    fn a_part_of_it_is_refused_or_has_fewer_structures() {
        let whole = example();
        for length in 0..whole.len() {
            if let Some(btf) = Btf::new(whole[..length].to_vec()) {
                let _ = btf.offset("s", "c");
            }
        }
    }
}
