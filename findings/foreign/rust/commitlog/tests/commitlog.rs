//! Tests of `CommitLog::truncate` for the divergence in ../../commitlog.md.

use commitlog::{
    message::{MessageBuf, MessageSet},
    CommitLog, LogOptions, ReadLimit,
};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
};

struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> TestDir {
        let path = env::temp_dir().join(format!("commitlog-{}-{}", name, process::id()));
        fs::create_dir_all(&path).unwrap();
        TestDir(path)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("Unable to delete test data directory");
    }
}

/// A segment stores 6 messages of 10 bytes, each with a header of 20 bytes.
fn open(dir: &Path) -> CommitLog {
    let mut opts = LogOptions::new(dir);
    opts.segment_max_bytes(200);
    opts.index_max_items(20);
    CommitLog::new(opts).unwrap()
}

/// Appends 7 messages, so that the log rolls, and truncates to the first message.
fn open_and_truncate(dir: &Path) -> CommitLog {
    let mut log = open(dir);
    for _ in 0..7 {
        log.append_msg("0123456789").unwrap();
    }
    log.truncate(0).expect("Unable to truncate file");
    log
}

fn offsets(messages: &MessageBuf) -> Vec<u64> {
    messages.iter().map(|m| m.offset()).collect()
}

#[test]
pub fn append_after_truncate_into_closed_segment() {
    let dir = TestDir::new("append");
    let mut log = open_and_truncate(&dir.0);

    assert_eq!(log.append_msg("x").unwrap(), 1);

    assert_eq!(offsets(&log.read(0, ReadLimit::default()).unwrap()), vec![0, 1]);
}

/// The file of the index ends after 6 entries, because the roll has trimmed it. The segment stores 8
/// short messages more.
#[test]
pub fn reopen_after_truncate_into_closed_segment() {
    let dir = TestDir::new("reopen");
    let mut log = open_and_truncate(&dir.0);
    for offset in 1..=8 {
        assert_eq!(log.append_msg("x").unwrap(), offset);
    }
    log.flush().unwrap();
    drop(log);

    let log = open(&dir.0);

    assert_eq!(log.next_offset(), 9);
    assert_eq!(offsets(&log.read(8, ReadLimit::default()).unwrap()), vec![8]);
}
