//! Limits for the memory that the allocator keeps: for threads, and of large blocks.
//!
//! # Threads
//!
//! The allocator of glibc has up to eight arenas for each processor, and gives each new thread one of them. A host
//! reads and writes files on threads that come and go, so that after a while every arena has held the largest of those
//! buffers, and none gives its pages back. In a soak (`make soak`) a host with 16 arenas grew by 0.17 MB a minute
//! and reached 36 MiB; with two it grew by 0.05 MB a minute and reached 28 MiB.
//!
//! # Large blocks
//!
//! A block above a threshold has pages of its own, which return to the system when it is freed. By default the
//! threshold grows with the largest block that was freed, up to 32 MiB. After one large message, blocks of that size
//! come from an arena and leave gaps in it. A threshold that is set once stays.
//!
//! This crate is the only one with `unsafe` code: `mallopt` has no safe wrapper. The call takes two integers and keeps no
//! pointer; glibc locks around it. Other allocators are left as they are.

#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

/// Lets the allocator use at most this many arenas. Returns false if the allocator has no such limit, or refuses it.
///
/// Call it before other threads start: an arena that exists stays.
pub fn limit_arenas(most: usize) -> bool {
    let Ok(most) = i32::try_from(most) else { return false };
    most > 0 && set_most_arenas(most)
}

/// Gives each block of at least so many bytes its own pages, however large the blocks were that were freed before.
/// Returns false if the allocator has no such threshold, or refuses it.
pub fn fix_mmap_threshold(bytes: usize) -> bool {
    i32::try_from(bytes).is_ok_and(|bytes| bytes > 0 && set_mmap_threshold(bytes))
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn set_mmap_threshold(bytes: i32) -> bool {
    // SAFETY: as in `set_most_arenas`.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, bytes) == 1 }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn set_mmap_threshold(_: i32) -> bool {
    false
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn set_most_arenas(most: i32) -> bool {
    // SAFETY: `mallopt` takes two integers by value, has no preconditions, and may be called at any time.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, most) == 1 }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn set_most_arenas(_: i32) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_beyond_the_limit_share_arenas() {
        if !limit_arenas(1) {
            // Another allocator.
            return;
        }
        let arenas = || {
            let mut text = String::new();
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            // An arena of a thread starts at a multiple of 64 MiB, the size that is reserved for it.
            for line in maps.lines().filter(|line| line.split_whitespace().count() == 5) {
                let start = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
                if start % (64 << 20) == 0 {
                    text.push_str(line);
                    text.push('\n');
                }
            }
            text
        };
        let before = arenas();
        let threads: Vec<_> = (0..8)
            .map(|number| {
                std::thread::spawn(move || {
                    let held = vec![number; 1_000];
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    held.len()
                })
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), 1_000);
        }
        assert_eq!(arenas().lines().count(), before.lines().count(), "{before}\n{}", arenas());
    }

    #[test]
    fn a_large_block_returns_to_the_system_also_after_a_larger_one_was_freed() {
        if !fix_mmap_threshold(128 << 10) {
            // Another allocator.
            return;
        }
        let block = |bytes: usize| std::hint::black_box(vec![1_u8; bytes]);
        drop(block(24 << 20));
        let held = block(16 << 20);
        let address = held.as_ptr() as usize;
        let is_mapped = || {
            std::fs::read_to_string("/proc/self/maps").unwrap().lines().any(|line| {
                let range = line.split(' ').next().unwrap().split_once('-').unwrap();
                let [start, end] = [range.0, range.1].map(|text| usize::from_str_radix(text, 16).unwrap());
                (start..end).contains(&address)
            })
        };
        assert!(is_mapped());
        drop(held);
        assert!(!is_mapped(), "the block came from an arena, which keeps it");
    }

    #[test]
    fn no_arena_is_no_limit() {
        assert!(!limit_arenas(0));
        assert!(!limit_arenas(usize::MAX));
        assert!(!fix_mmap_threshold(0));
        assert!(!fix_mmap_threshold(usize::MAX));
    }
}
