//! A plain ustar archive: a header of 512 bytes before each file, and two empty blocks at the end.

/// The size of a block. Headers have one, and contents are filled up to whole ones.
const BLOCK: usize = 512;
/// The longest name of a file.
const NAME_BYTES: usize = 100;

/// An archive in memory.
#[derive(Debug, Default)]
pub(super) struct Archive(Vec<u8>);

impl Archive {
    /// Adds a file that only its owner can read. Names are ours: short, and without links or folders above.
    pub(super) fn add(&mut self, name: &str, content: &[u8], seconds_since_1970: u64) {
        let mut header = [0; BLOCK];
        let mut put = |at: usize, text: &[u8]| {
            for (place, byte) in header.iter_mut().skip(at).zip(text) {
                *place = *byte;
            }
        };
        put(0, &name.as_bytes()[..name.len().min(NAME_BYTES)]);
        put(100, b"0000600\0");
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, format!("{:011o}\0", content.len()).as_bytes());
        put(136, format!("{seconds_since_1970:011o}\0").as_bytes());
        // The checksum counts its own field as spaces.
        put(148, b"        ");
        put(156, b"0");
        put(257, b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        let mut put = |at: usize, text: &[u8]| {
            for (place, byte) in header.iter_mut().skip(at).zip(text) {
                *place = *byte;
            }
        };
        put(148, format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&header);
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
    }

    /// The bytes of the whole archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }
}
