//! Tests of Tansu with storage in memory for the divergences in `../../tansu.md`, in its order.
//!
//! `TANSU` is the path of the program; without it, `tansu` is on the `PATH`.

use std::{
    env,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use assert2::assert;
use bytes::Bytes;
use krabka_protocol::{
    Decode, Encode, ProtocolRequest,
    owned::{
        create_topics_request::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest},
        delete_records_request::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic},
        fetch_request::{FetchPartition, FetchRequest, FetchTopic},
        list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic},
        produce_request::{PartitionProduceData, ProduceRequest, TopicProduceData},
        request_header::RequestHeader,
    },
    records::{Attributes, Record, RecordBatch, RecordsPayload},
};

const TOPIC: &str = "topic";
const T: i64 = 1_700_000_000_000;
const LATEST: i64 = -1;
const MAX_TIMESTAMP: i64 = -3;
const NONE: i16 = 0;
const CORRUPT_MESSAGE: i16 = 2;
const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const UNSUPPORTED_VERSION: i16 = 35;
const INVALID_REQUEST: i16 = 42;
const UNKNOWN_LEADER_EPOCH: i16 = 76;

/// A broker, a connection to it, and a topic with one partition.
struct Broker {
    process: Child,
    connection: TcpStream,
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Broker {
    fn start(config: &[(&str, &str)]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = format!("tcp://127.0.0.1:{port}");
        let mut process = Command::new(env::var_os("TANSU").unwrap_or("tansu".into()))
            .args(["broker", "--listener-url", &url, "--advertised-listener-url", &url])
            .args(["--storage-engine", "memory://tansu/"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let connection = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(connection) => break connection,
                Err(_) => assert!(process.try_wait().unwrap() == None, "the broker ended"),
            }
            sleep(Duration::from_millis(50));
        };
        connection.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut broker = Self { process, connection };
        let configs = config.iter().map(|(name, value)| CreatableTopicConfig {
            name: (*name).into(),
            value: Some((*value).into()),
            ..CreatableTopicConfig::default()
        });
        let topic = CreatableTopic {
            name: TOPIC.into(),
            num_partitions: 1,
            replication_factor: 1,
            configs: configs.collect(),
            ..CreatableTopic::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 30_000, ..CreateTopicsRequest::default() };
        assert!(broker.ask(&request, 4).unwrap().topics[0].error_code == NONE);
        broker
    }

    /// The body of a response, without the size and the correlation id.
    fn ask_for_bytes(&mut self, key: i16, version: i16, body: &[u8]) -> io::Result<Vec<u8>> {
        let header = RequestHeader {
            request_api_key: key,
            request_api_version: version,
            client_id: Some("findings".into()),
            ..RequestHeader::default()
        };
        let mut request = Vec::new();
        header.encode(&mut request, 1).unwrap();
        request.extend_from_slice(body);
        self.connection.write_all(&u32::try_from(request.len()).unwrap().to_be_bytes())?;
        self.connection.write_all(&request)?;
        let mut size = [0; 4];
        self.connection.read_exact(&mut size)?;
        let mut response = vec![0; usize::try_from(u32::from_be_bytes(size)).unwrap()];
        self.connection.read_exact(&mut response)?;
        Ok(response.split_off(4))
    }

    /// The response to a request in a version before the flexible ones.
    fn ask<R: ProtocolRequest>(&mut self, request: &R, version: i16) -> io::Result<R::Response> {
        assert!(version < R::FLEXIBLE_MIN);
        let mut body = Vec::new();
        request.encode(&mut body, version).unwrap();
        let response = self.ask_for_bytes(R::API_KEY, version, &body)?;
        Ok(R::Response::decode(&mut response.as_slice(), version).unwrap())
    }

    /// Append batches, and return the error code.
    fn produce(&mut self, records: RecordsPayload) -> i16 {
        let partition = PartitionProduceData { records: Some(records), ..PartitionProduceData::default() };
        let topic =
            TopicProduceData { name: TOPIC.into(), partition_data: vec![partition], ..TopicProduceData::default() };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data: vec![topic], ..ProduceRequest::default() };
        let response = self.ask(&request, 7).unwrap();
        response.responses[0].partition_responses[0].error_code
    }

    fn append(&mut self, batch: RecordBatch) {
        assert!(self.produce(batch.into()) == NONE);
    }

    /// Batches from offset 0.
    fn fetch(&mut self, max_wait_ms: i32) -> Vec<RecordBatch> {
        let partition = FetchPartition { partition_max_bytes: 1 << 20, ..FetchPartition::default() };
        let topic = FetchTopic { topic: TOPIC.into(), partitions: vec![partition], ..FetchTopic::default() };
        let request = FetchRequest {
            replica_id: -1,
            max_wait_ms,
            max_bytes: 1 << 20,
            topics: vec![topic],
            ..FetchRequest::default()
        };
        let response = self.ask(&request, 4).unwrap();
        let partitions = response.responses.into_iter().flat_map(|topic| topic.partitions);
        partitions
            .filter_map(|partition| partition.records)
            .flat_map(|records| match records {
                RecordsPayload::V2(batches) => batches,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    /// The error code, the offset and the timestamp of each partition.
    fn list_offsets(&mut self, version: i16, topic: &str, partitions: &[Target]) -> io::Result<Vec<(i16, i64, i64)>> {
        let partitions = partitions.iter().map(|target| ListOffsetsPartition {
            partition_index: target.partition,
            current_leader_epoch: target.leader_epoch,
            timestamp: target.timestamp,
            ..ListOffsetsPartition::default()
        });
        let topic =
            ListOffsetsTopic { name: topic.into(), partitions: partitions.collect(), ..ListOffsetsTopic::default() };
        let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..ListOffsetsRequest::default() };
        let response = self.ask(&request, version)?;
        let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
        Ok(partitions.map(|found| (found.error_code, found.offset, found.timestamp)).collect())
    }
}

/// Partition, leader epoch and timestamp of a ListOffsets request.
#[derive(Clone, Copy)]
struct Target {
    partition: i32,
    leader_epoch: i32,
    timestamp: i64,
}

const fn target(timestamp: i64) -> Target {
    Target { partition: 0, leader_epoch: -1, timestamp }
}

/// A batch of one record for each timestamp.
fn batch(timestamps: &[i64]) -> RecordBatch {
    let records = timestamps.iter().enumerate().map(|(delta, timestamp)| Record {
        offset_delta: i32::try_from(delta).unwrap(),
        timestamp_delta: timestamp - timestamps[0],
        value: Some(Bytes::from_static(b"value")),
        ..Record::default()
    });
    RecordBatch {
        partition_leader_epoch: -1,
        last_offset_delta: i32::try_from(timestamps.len()).unwrap() - 1,
        base_timestamp: timestamps[0],
        max_timestamp: *timestamps.iter().max().unwrap(),
        records: records.collect(),
        ..RecordBatch::default()
    }
}

#[test]
fn a_batch_with_a_wrong_checksum_is_rejected() {
    let mut broker = Broker::start(&[]);
    let mut bytes = Vec::new();
    batch(&[T]).encode(&mut bytes).unwrap();
    *bytes.last_mut().unwrap() ^= 1;

    let error = broker.produce(RecordsPayload::Raw(bytes.into()));
    assert!(error == CORRUPT_MESSAGE, "the batch format has a checksum");
}

#[test]
fn a_lookup_by_time_uses_the_timestamps_of_the_records() {
    let mut broker = Broker::start(&[]);
    broker.append(batch(&[T + 50, T + 80, T + 20]));

    let found = [T + 51, T + 81].map(|timestamp| broker.list_offsets(2, TOPIC, &[target(timestamp)]).unwrap()[0].1);
    assert!(found == [1, -1], "KIP-79: the first record whose timestamp is at least the target");
}

#[test]
fn the_latest_offset_is_after_a_compressed_batch() {
    let mut broker = Broker::start(&[]);
    let gzip = Attributes(1);
    broker.append(RecordBatch { attributes: gzip, ..batch(&[T, T, T]) });

    let (_, latest, _) = broker.list_offsets(2, TOPIC, &[target(LATEST)]).unwrap()[0];
    assert!(latest == 3, "LO-2b: the offset after the last record");
}

#[test]
fn a_target_without_a_meaning_gets_an_error_code() {
    let mut broker = Broker::start(&[]);

    let found = broker.list_offsets(1, TOPIC, &[target(MAX_TIMESTAMP)]).map_err(|error| error.kind());
    assert!(found == Ok(vec![(UNSUPPORTED_VERSION, -1, -1)]), "KIP-734: version 7 brings the target -3");
}

#[test]
fn delete_records_gets_a_response() {
    let mut broker = Broker::start(&[]);
    broker.append(batch(&[T, T]));

    let partition = DeleteRecordsPartition { offset: 1, ..DeleteRecordsPartition::default() };
    let topic = DeleteRecordsTopic { name: TOPIC.into(), partitions: vec![partition], ..DeleteRecordsTopic::default() };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 30_000, ..DeleteRecordsRequest::default() };
    let deleted = broker.ask(&request, 1).map(|response| response.topics[0].partitions[0].low_watermark);
    assert!(deleted.map_err(|error| error.kind()) == Ok(1), "KIP-107: the new log start offset");
}

#[test]
fn invalid_requests_get_error_codes() {
    let mut broker = Broker::start(&[]);
    let latest = target(LATEST);
    let mut error = |topic, targets: &[Target]| broker.list_offsets(4, topic, targets).unwrap()[0].0;

    let errors = [
        error(TOPIC, &[latest, latest]),
        error(TOPIC, &[Target { partition: 1, ..latest }]),
        error("absent", &[latest]),
        error(TOPIC, &[Target { leader_epoch: 1, ..latest }]),
    ];
    assert!(
        errors == [INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_LEADER_EPOCH],
        "KIP-320: a leader epoch that the broker does not know"
    );
}

#[test]
fn list_offsets_version_0_has_an_array_of_offsets() {
    let mut broker = Broker::start(&[]);
    // Replica id; topics: name; partitions: index, timestamp, largest number of offsets.
    let mut request = [(-1_i32).to_be_bytes(), 1_i32.to_be_bytes()].concat();
    request.extend([0, 5]);
    request.extend(TOPIC.bytes());
    request.extend([1_i32.to_be_bytes(), 0_i32.to_be_bytes()].concat());
    request.extend(LATEST.to_be_bytes());
    request.extend(1_i32.to_be_bytes());

    let response = broker.ask_for_bytes(2, 0, &request).unwrap();
    // Topics: name; partitions: index, error code, offsets: one of eight bytes.
    assert!(response.len() == 4 + 7 + 4 + 4 + 2 + 4 + 8, "the size of the response");
}

#[test]
fn a_topic_with_log_append_time_has_the_time_of_the_append() {
    let mut broker = Broker::start(&[("message.timestamp.type", "LogAppendTime")]);
    broker.append(batch(&[0]));

    let attributes = broker.fetch(100)[0].attributes;
    assert!(attributes.0 == 8, "KIP-32: the timestamp type of the batch is LogAppendTime");
}

#[test]
fn a_batch_that_the_broker_compresses_has_the_leader_epoch() {
    let mut broker = Broker::start(&[("compression.type", "zstd")]);
    broker.append(batch(&[T]));

    let leader_epoch = broker.fetch(100)[0].partition_leader_epoch;
    assert!(leader_epoch == 0, "KIP-101, KIP-320: the leader's epoch");
}

#[test]
fn a_fetch_without_waiting_returns_records() {
    let mut broker = Broker::start(&[]);
    broker.append(batch(&[T]));

    let batches = broker.fetch(0).len();
    assert!(batches == 1, "the batch exists when the request arrives");
}
