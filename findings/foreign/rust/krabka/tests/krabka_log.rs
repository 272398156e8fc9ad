//! Tests of krabka-log for the divergences in `../../krabka-log.md`, in its order.
//!
//! A log that is dropped without `close` is the log of a process that was killed.

use std::{
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
};

use assert2::assert;
use bytes::Bytes;
use krabka_log::{AbortedTxn, Log, LogConfig, Offset, ProducerId};
use krabka_protocol::records::{Attributes, Record, RecordBatch};
use krabka_units::prelude::bytes;

const ABORT: i16 = 0;
const COMMIT: i16 = 1;

/// An empty directory for the log of a test.
fn directory(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn open_log(dir: &Path) -> Log {
    Log::open(dir, LogConfig::default()).unwrap()
}

/// A log with two batches of one record in each segment, and an index entry for each batch.
fn open_small_segments(dir: &Path) -> Log {
    let config = LogConfig { segment_size: bytes(150), index_interval: bytes(0), ..LogConfig::default() };
    Log::open(dir, config).unwrap()
}

/// A batch of one record for each timestamp.
fn batch(timestamps: &[i64]) -> RecordBatch {
    let records = timestamps.iter().enumerate().map(|(delta, timestamp)| Record {
        offset_delta: i32::try_from(delta).unwrap(),
        timestamp_delta: timestamp - timestamps[0],
        ..Record::default()
    });
    RecordBatch {
        last_offset_delta: i32::try_from(timestamps.len()).unwrap() - 1,
        base_timestamp: timestamps[0],
        max_timestamp: *timestamps.iter().max().unwrap(),
        records: records.collect(),
        ..RecordBatch::default()
    }
}

/// A batch of one record in a transaction.
fn transactional_batch(producer: i64) -> RecordBatch {
    RecordBatch {
        producer_id: producer,
        producer_epoch: 0,
        base_sequence: 0,
        attributes: Attributes::default().with_transactional(true),
        ..batch(&[0])
    }
}

/// A marker that ends the transaction of a producer.
fn marker(producer: i64, control_type: i16) -> RecordBatch {
    let mut marker = transactional_batch(producer);
    marker.attributes = marker.attributes.with_control(true);
    marker.base_sequence = -1;
    marker.records[0].key = Some(Bytes::from([[0; 2], control_type.to_be_bytes()].concat()));
    marker.records[0].value = Some(Bytes::from(vec![0; 6]));
    marker
}

fn append(log: &mut Log, mut batch: RecordBatch) {
    log.append(&mut batch).unwrap();
}

fn cut(dir: &Path, name: &str, bytes: u64) {
    let file = OpenOptions::new().write(true).open(dir.join(name)).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
}

fn size(dir: &Path, name: &str) -> u64 {
    fs::metadata(dir.join(name)).map_or(0, |metadata| metadata.len())
}

/// The log start offset and the log end offset.
fn bounds(log: &Log) -> [i64; 2] {
    [log.log_start_offset().0, log.log_end_offset().0]
}

#[test]
fn a_sealed_segment_without_its_time_index_keeps_its_largest_timestamp() {
    let dir = directory("lost_time_index");
    let mut log = open_small_segments(&dir);
    for timestamp in [80, 60, 70, 50] {
        append(&mut log, batch(&[timestamp]));
    }
    drop(log);
    fs::remove_file(dir.join("00000000000000000000.timeindex")).unwrap();

    let log = open_small_segments(&dir);
    let found =
        [51, 61, 71].map(|target| log.offset_for_timestamp(target).map(|(offset, timestamp)| (offset.0, timestamp)));
    assert!(found == [Some((0, 80)); 3], "KIP-79: the first record whose timestamp is at least the target");
}

#[test]
fn a_log_that_ends_before_its_start_is_opened_at_its_start() {
    let dir = directory("end_before_start");
    let mut log = open_log(&dir);
    append(&mut log, batch(&[0]));
    append(&mut log, batch(&[0]));
    log.set_log_start_offset(Offset(2)).unwrap();
    drop(log);
    fs::write(dir.join("00000000000000000000.log"), "").unwrap();

    let log = open_log(&dir);
    assert!(bounds(&log) == [2, 2], "KIP-107: deleted offsets are not assigned again");
}

#[test]
fn truncation_to_a_log_start_offset_inside_a_batch_keeps_the_log_start_offset() {
    let mut log = open_log(&directory("truncation_inside_batch"));
    append(&mut log, batch(&[0, 0, 0]));
    append(&mut log, batch(&[0]));
    log.set_log_start_offset(Offset(2)).unwrap();

    log.truncate_to(Offset(2)).unwrap();
    assert!(bounds(&log) == [2, 2], "KIP-107: deleted records cannot be read again");
}

#[test]
fn truncation_to_before_the_log_start_offset_succeeds() {
    let dir = directory("truncation_before_start");
    append(&mut open_log(&dir), marker(0, COMMIT));
    let mut log = open_log(&dir);
    log.set_log_start_offset(Offset(1)).unwrap();

    let truncated = log.truncate_to(Offset(0)).map_err(|error| error.to_string());
    assert!(truncated == Ok(()), "KIP-101: a follower truncates to where its leader diverges");
    assert!(bounds(&log) == [0, 0]);
}

#[test]
fn truncation_removes_an_open_transaction() {
    let mut log = open_log(&directory("truncated_transaction"));
    // Without a sequence number, the batch has no producer state.
    let mut transactional = RecordBatch { base_sequence: -1, ..transactional_batch(0) };
    log.append_at(&mut transactional, Offset(2)).unwrap();
    log.truncate_to(Offset(0)).unwrap();

    let appended = log.append(&mut batch(&[0])).map_err(|error| error.to_string());
    assert!(appended == Ok((Offset(0), None)), "KIP-98, KIP-101: no transaction is open");
}

#[test]
fn a_log_opens_after_a_sealed_segment_has_lost_its_records() {
    let dir = directory("lost_records");
    let mut log = open_log(&dir);
    append(&mut log, transactional_batch(0));
    assert!(log.roll().unwrap());
    drop(log);
    fs::write(dir.join("00000000000000000000.log"), "").unwrap();

    let opened = Log::open(&dir, LogConfig::default()).map(|log| bounds(&log)).map_err(|error| error.to_string());
    assert!(opened == Ok([0, 1]), "the partition is online without the lost records");
}

#[test]
fn the_last_stable_offset_is_not_before_the_log_start_offset() {
    let mut log = open_log(&directory("last_stable_offset"));
    append(&mut log, transactional_batch(0));
    log.set_log_start_offset(Offset(1)).unwrap();

    let last_stable_offset = log.last_stable_offset(Offset(1));
    assert!(last_stable_offset == Offset(1), "KIP-98: a read_committed consumer can fetch from its end offset");
}

#[test]
fn entries_of_aborted_transactions_are_lost_with_their_records() {
    let dir = directory("lost_marker");
    let mut log = open_log(&dir);
    append(&mut log, transactional_batch(1));
    append(&mut log, marker(1, ABORT));
    drop(log);
    cut(&dir, "00000000000000000000.log", 1);

    let mut log = open_log(&dir);
    append(&mut log, marker(1, COMMIT));
    let aborted = log.aborted_in_range(Offset(0), Offset(2));
    assert!(aborted == [], "KIP-98: the transaction is committed");
}

#[test]
fn a_lost_offset_index_of_a_sealed_segment_is_rebuilt() {
    let dir = directory("lost_offset_index");
    let mut log = open_small_segments(&dir);
    for timestamp in [80, 60, 70, 50] {
        append(&mut log, batch(&[timestamp]));
    }
    log.close();
    fs::remove_file(dir.join("00000000000000000000.index")).unwrap();

    drop(open_small_segments(&dir));
    assert!(size(&dir, "00000000000000000000.index") == 8, "the entry of the second batch");
}

#[test]
fn closing_writes_the_last_time_index_entry() {
    let dir = directory("last_time_index_entry");
    let mut log = open_log(&dir);
    append(&mut log, batch(&[1]));
    log.close();

    assert!(size(&dir, "00000000000000000000.timeindex") == 12, "KIP-33: the largest timestamp of the segment");
}

#[test]
fn the_entry_of_an_aborted_transaction_ignores_decided_transactions() {
    let mut log = open_log(&directory("decided_transaction"));
    append(&mut log, transactional_batch(1));
    append(&mut log, transactional_batch(2));
    append(&mut log, marker(1, COMMIT));
    append(&mut log, marker(2, ABORT));

    let entry = AbortedTxn {
        start_offset: Offset(1),
        last_offset: Offset(3),
        producer_id: ProducerId(2),
        last_stable_offset: Offset(4),
    };
    assert!(log.aborted_in_range(Offset(0), Offset(4)) == [entry], "KIP-98: no transaction is open any more");
}

#[test]
fn a_batch_larger_than_segment_bytes_is_rejected() {
    let config = LogConfig { segment_size: bytes(1000), ..LogConfig::default() };
    let mut log = Log::open(directory("large_batch"), config).unwrap();
    let mut large = batch(&[0]);
    large.records[0].value = Some(Bytes::from(vec![0; 931]));
    assert!(large.encoded_len() == 1001);

    assert!(let Err(_) = log.append(&mut large), "LG-59: a batch has at most `segment.bytes` bytes");
}
