//! krabka-log behind version 2 of conformance's line protocol: its `Log`, and of a broker above it what a log needs.
//!
//! The broker's are the high watermark, the log start offset's checkpoint, and the check that an offset is inside the log.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::{engine::general_purpose::STANDARD, Engine};
use bytes::Bytes;
use krabka_log::{Log, LogConfig, LogError, Offset, VerbatimBatch};
use krabka_protocol::records::RecordBatchHeader;
use krabka_units::prelude::{bytes, days, millis};
use serde_json::{json, Value};
use zerocopy::FromBytes;

struct Rejection(&'static str, String);

impl From<LogError> for Rejection {
    fn from(error: LogError) -> Self {
        let kind = match error {
            LogError::OffsetMismatch { .. } => "unexpected_offset",
            LogError::OffsetTooLow { .. } | LogError::OffsetBelowLocalStart { .. } => "out_of_range",
            LogError::RecordTooLarge { .. } => "too_large",
            LogError::InvalidArgument(_) => "invalid_argument",
            LogError::Io(_) => "io",
            _ => "corrupt_record",
        };
        Rejection(kind, error.to_string())
    }
}

/// An open log with the high watermark, which a broker would keep.
struct Opened {
    log: Log,
    directory: PathBuf,
    high_watermark: i64,
}

fn number(request: &Value, name: &str) -> i64 {
    request[name].as_i64().unwrap_or(0)
}

fn config(settings: &Value) -> LogConfig {
    let size = |name: &str, otherwise: u32| settings[name].as_u64().map_or(otherwise, |n| n as u32);
    let mut config = LogConfig::default();
    config.segment_size = bytes(size("segment.bytes", 1 << 30));
    config.segment_index_size = bytes(size("segment.index.bytes", 10 << 20));
    config.index_interval = bytes(size("index.interval.bytes", 4096));
    config.segment_roll_interval = days(30_000);
    config.file_delete_delay = millis(0);
    config.retention = None;
    config.retention_size = settings["retention.bytes"].as_u64().map(|n| bytes(n as u32));
    config
}

fn open(request: &Value) -> Result<Opened, Rejection> {
    let directory = PathBuf::from(request["path"].as_str().unwrap_or_default());
    let mut log = Log::open(&directory, config(&request["settings"]))?;
    let start = number(request, "log_start_offset");
    if start > log.log_start_offset().0 {
        log.set_log_start_offset(Offset(start))?;
    }
    let high_watermark = log.log_start_offset().0;
    Ok(Opened { log, directory, high_watermark })
}

impl Opened {
    fn append(&mut self, request: &Value) -> Result<Value, Rejection> {
        let data = STANDARD.decode(request["batches"].as_str().unwrap_or_default()).unwrap();
        let (header, _) = RecordBatchHeader::read_from_prefix(&data).unwrap();
        let mut batch = VerbatimBatch::from_header(&header, Bytes::from(data));
        if request["role"] == "leader" {
            batch.leader_epoch = krabka_log::LeaderEpoch(number(request, "leader_epoch") as i32);
            self.log.append_verbatim(&batch)?;
        } else {
            self.log.append_verbatim_at(&batch, Offset(header.base_offset.get()))?;
        }
        Ok(Value::Null)
    }

    fn list_offset(&self, target: i64) -> Result<Value, Rejection> {
        Ok(match target {
            -1 => json!([-1, self.log.log_end_offset().0, -1]),
            -2 | -4 => json!([-1, self.log.log_start_offset().0, -1]),
            // krabka-log has no tiered storage: these targets have no offset.
            -5 | -6 => json!([-1, -1, -1]),
            -3 => self.log.max_timestamp_offset_and_ts()?.map_or(Value::Null, |(offset, ts)| json!([ts, offset.0, -1])),
            _ => self
                .log
                .offset_for_timestamp_checked(target)?
                .map_or(Value::Null, |(offset, ts)| json!([ts, offset.0, -1])),
        })
    }

    fn segments(&self) -> HashSet<OsString> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name());
        names.filter(|name| Path::new(name).extension().is_some_and(|end| end == "log")).collect()
    }

    fn answer(&mut self, request: &Value) -> Result<Option<Value>, Rejection> {
        let end = self.log.log_end_offset();
        let offset = Offset(number(request, "offset"));
        let value = match request["op"].as_str().unwrap_or_default() {
            "append" => self.append(request)?,
            "roll" => {
                self.log.roll()?;
                Value::Null
            }
            "truncate" => {
                self.log.truncate_to(offset)?;
                json!(offset < end)
            }
            "truncate_fully" => {
                self.log.reset_to(offset)?;
                Value::Null
            }
            "delete_records" if offset.0 > self.high_watermark => {
                return Err(Rejection("out_of_range", "beyond the high watermark".into()))
            }
            "delete_records" => {
                self.log.set_log_start_offset(offset)?;
                Value::Null
            }
            "retention" => {
                let before = self.segments();
                self.log.tick(SystemTime::now(), Offset(self.high_watermark))?;
                json!(before.difference(&self.segments()).count())
            }
            "high_watermark" => {
                self.high_watermark = offset.0;
                Value::Null
            }
            "list_offsets" => {
                let targets = request["targets"].as_array().into_iter().flatten();
                targets.map(|target| self.list_offset(target.as_i64().unwrap_or(0))).collect::<Result<Value, _>>()?
            }
            "read" if offset < self.log.log_start_offset() || offset > end => {
                return Err(Rejection("out_of_range", "not in the log".into()))
            }
            "read" => json!(STANDARD.encode(self.log.read_raw(offset, end, bytes(1))?.bytes)),
            "state" => {
                let (start, stable) =
                    (self.log.log_start_offset().0, self.log.last_stable_offset(Offset(self.high_watermark)).0);
                let (end, high_watermark) = (end.0, self.high_watermark);
                json!({"start_offset": start, "end_offset": end, "high_watermark": high_watermark,
                       "last_stable_offset": stable})
            }
            _ => return Ok(None),
        };
        // Kafka keeps the high watermark between log start and log end.
        let (start, end) = (self.log.log_start_offset().0, self.log.log_end_offset().0);
        self.high_watermark = self.high_watermark.clamp(start.min(end), end);
        Ok(Some(if request["op"] == "high_watermark" { json!(self.high_watermark) } else { value }))
    }
}

fn main() -> io::Result<()> {
    let mut opened: Option<Opened> = None;
    for line in io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let answer = match request["op"].as_str().unwrap_or_default() {
            "start" => Ok(Some(json!({
                "name": "krabka-log", "version": "1.0.8", "language": "rust", "kinds": ["log"],
                "capabilities": ["segments", "compression", "transactions", "time_lookups"],
            }))),
            "stop" => Ok(Some(Value::Null)),
            "open_log" => {
                opened = None;
                open(&request).map(|found| {
                    opened = Some(found);
                    Some(Value::Null)
                })
            }
            "close" => {
                if let Some(open) = opened.take() {
                    open.log.close();
                }
                Ok(Some(Value::Null))
            }
            _ => opened.as_mut().map_or(Ok(None), |open| open.answer(&request)),
        };
        let reply = match answer {
            Ok(Some(value)) => json!({"ok": value}),
            Ok(None) => json!({"unsupported": true}),
            Err(Rejection(kind, message)) => json!({"error": kind, "message": message}),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{reply}")?;
        out.flush()?;
        if request["op"] == "stop" {
            break;
        }
    }
    Ok(())
}
