// Tests of kfake for the divergences in ../kfake.md that break a guarantee of Kafka.
// The file compiles in pkg/kfake of franz-go, too.
package kfake_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// TestFetchMaxBytesListsAbortedTransactions verifies that a read_committed
// fetch lists the aborted transaction of the batches that it returns if
// MaxBytes ends the response before the abort marker. Without the entry, a
// consumer receives the records of the aborted transaction.
func TestFetchMaxBytesListsAbortedTransactions(t *testing.T) {
	t.Parallel()
	const topic = "fetch-max-bytes-aborted"

	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	ctx := newContext(t)
	cl := newPlainClient(t, c, kgo.DefaultProduceTopic(topic))
	producer := newPlainClient(t, c, kgo.DefaultProduceTopic(topic), kgo.TransactionalID("aborts"))

	if err := producer.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produceSync(t, producer, "aborted")
	produceSync(t, cl, "plain")

	// The log contains both batches now, and no marker: their size is
	// the MaxBytes that leaves no space for the marker.
	both := int32(len(fetchFromStart(t, cl, topic, 1<<20, 0).RecordBatches))
	if err := producer.EndTransaction(ctx, kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	id, _, err := producer.ProducerID(ctx)
	if err != nil {
		t.Fatal(err)
	}

	p := fetchFromStart(t, cl, topic, both, 1)
	if got := int32(len(p.RecordBatches)); got != both {
		t.Fatalf("fetched %d bytes, want the two batches with %d bytes", got, both)
	}
	aborted := p.AbortedTransactions
	if len(aborted) != 1 || aborted[0].ProducerID != id || aborted[0].FirstOffset != 0 {
		t.Errorf("read_committed fetch of offsets 0 and 1 with MaxBytes %d: got aborted transactions %v, want [{producer %d, first offset 0}] (KIP-98: a consumer skips the records of the listed transactions)",
			both, aborted, id)
	}
}

// TestLogAppendTimeTopic verifies that the broker of a topic with
// message.timestamp.type=LogAppendTime replaces the producer's timestamp.
func TestLogAppendTimeTopic(t *testing.T) {
	t.Parallel()
	const topic = "log-append-time"

	c := newCluster(t, kfake.NumBrokers(1))
	logAppendTime := "LogAppendTime"
	create := kmsg.NewPtrCreateTopicsRequest()
	ct := kmsg.NewCreateTopicsRequestTopic()
	ct.Topic = topic
	ct.NumPartitions = 1
	ct.ReplicationFactor = 1
	cc := kmsg.NewCreateTopicsRequestTopicConfig()
	cc.Name = "message.timestamp.type"
	cc.Value = &logAppendTime
	ct.Configs = append(ct.Configs, cc)
	create.Topics = append(create.Topics, ct)

	ctx := newContext(t)
	cl := newPlainClient(t, c, kgo.DefaultProduceTopic(topic), kgo.ConsumeTopics(topic))
	created, err := create.RequestWith(ctx, cl)
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(created.Topics[0].ErrorCode); err != nil {
		t.Fatal(err)
	}

	before := time.Now().Truncate(time.Millisecond)
	r := kgo.StringRecord("v")
	r.Timestamp = time.UnixMilli(0)
	if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
		t.Fatal(err)
	}

	fs := cl.PollFetches(ctx)
	if err := fs.Err(); err != nil {
		t.Fatal(err)
	}
	const createTime, appendTime = 0, 1
	if got := fs.NumRecords(); got != 1 {
		t.Fatalf("fetched %d records, want 1", got)
	}
	for _, r := range fs.Records() {
		if got := r.Attrs.TimestampType(); got != appendTime {
			t.Errorf("topic with LogAppendTime: got timestamp type %d, want %d (KIP-32: %d is CreateTime, %d is LogAppendTime)",
				got, appendTime, createTime, appendTime)
		}
		if r.Timestamp.Before(before) {
			t.Errorf("topic with LogAppendTime: got timestamp %d, want the time of the append, at least %d (KIP-32: the broker overwrites the producer's timestamp)",
				r.Timestamp.UnixMilli(), before.UnixMilli())
		}
	}
}

// TestDeleteRecordsBeforeLogStart verifies that DeleteRecords before an
// offset that is lower than the log start offset succeeds: the records are
// deleted already.
func TestDeleteRecordsBeforeLogStart(t *testing.T) {
	t.Parallel()
	const topic = "delete-records-again"

	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	cl := newPlainClient(t, c, kgo.DefaultProduceTopic(topic))
	produceSync(t, cl, "v0")
	produceSync(t, cl, "v1")

	if p := deleteRecords(t, cl, topic, 1); p.ErrorCode != 0 || p.LowWatermark != 1 {
		t.Fatalf("DeleteRecords before 1: got error code %d, low watermark %d", p.ErrorCode, p.LowWatermark)
	}
	p := deleteRecords(t, cl, topic, 0)
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil || p.LowWatermark != 1 {
		t.Errorf("DeleteRecords before 0 with log start offset 1: got error %v, low watermark %d, want no error, low watermark 1 (KIP-107: only an offset above the high watermark is OFFSET_OUT_OF_RANGE)",
			err, p.LowWatermark)
	}
}

// TestLastStableOffsetAfterDeleteRecords verifies that the last stable offset
// is not before the log start offset after the records of an open
// transaction are deleted. A read_committed consumer that seeks to the end
// would be out of range.
func TestLastStableOffsetAfterDeleteRecords(t *testing.T) {
	t.Parallel()
	const topic = "last-stable-offset-deleted"

	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	cl := newPlainClient(t, c, kgo.DefaultProduceTopic(topic))
	producer := newPlainClient(t, c, kgo.DefaultProduceTopic(topic), kgo.TransactionalID("stays-open"))

	produceSync(t, cl, "plain")
	if err := producer.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produceSync(t, producer, "open")
	produceSync(t, cl, "plain")

	// -1 deletes up to the high watermark.
	if p := deleteRecords(t, cl, topic, -1); p.ErrorCode != 0 || p.LowWatermark != 3 {
		t.Fatalf("DeleteRecords before the high watermark: got error code %d, low watermark %d", p.ErrorCode, p.LowWatermark)
	}

	req := kmsg.NewPtrListOffsetsRequest()
	req.IsolationLevel = 1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Timestamp = -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(newContext(t), cl)
	if err != nil {
		t.Fatal(err)
	}
	p := resp.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil || p.Offset != 3 {
		t.Errorf("ListOffsets -1 with read_committed and log start offset 3: got error %v, offset %d, want no error, offset 3 (KIP-98: the last stable offset is an offset of the log)",
			err, p.Offset)
	}
}

func newContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func newCluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func newPlainClient(t *testing.T, c *kfake.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.Fetch), 12) // Fetch v13 identifies topics by ID; v12 takes the name
	opts = append([]kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...), kgo.MaxVersions(v)}, opts...)
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func produceSync(t *testing.T, cl *kgo.Client, value string) {
	t.Helper()
	if err := cl.ProduceSync(newContext(t), kgo.StringRecord(value)).FirstErr(); err != nil {
		t.Fatalf("producing %s: %v", value, err)
	}
}

func fetchFromStart(t *testing.T, cl *kgo.Client, topic string, maxBytes int32, isolation int8) kmsg.FetchResponseTopicPartition {
	t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes = maxBytes
	req.IsolationLevel = isolation
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.PartitionMaxBytes = maxBytes
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(newContext(t), cl)
	if err != nil {
		t.Fatal(err)
	}
	p := resp.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
		t.Fatal(err)
	}
	return p
}

func deleteRecords(t *testing.T, cl *kgo.Client, topic string, before int64) kmsg.DeleteRecordsResponseTopicPartition {
	t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 5000
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Offset = before
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(newContext(t), cl)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Topics[0].Partitions[0]
}
