/* Tests of the mock cluster for the divergences in ../librdkafka.md.
 * In librdkafka's tests/, the file and its main function get a number. */
#include "test.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

/**
 * @name ListOffsets and Produce of the mock cluster behave like a broker.
 *
 * No client sends a partition twice or a batch with a wrong checksum, so
 * these requests are written to a socket.
 */

static const char *topic = "mock";
#define TOPIC 0, 4, 'm', 'o', 'c', 'k'
#define INT32(N) 0, 0, 0, N

/** A batch of one record with the value "value", and its checksum. */
static const unsigned char batch[] = {
    0,    0,    0,    0,    0,    0,    0,    0,    /* BaseOffset */
    0,    0,    0,    61,                           /* Length */
    0xff, 0xff, 0xff, 0xff,                         /* PartitionLeaderEpoch */
    2,                                              /* MagicByte */
    0x98, 0x94, 0x87, 0x09,                         /* CRC */
    0,    0,                                        /* Attributes */
    0,    0,    0,    0,                            /* LastOffsetDelta */
    0,    0,    0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, /* BaseTimestamp */
    0,    0,    0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, /* MaxTimestamp */
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* ProducerId */
    0xff, 0xff,                                     /* ProducerEpoch */
    0xff, 0xff, 0xff, 0xff,                         /* BaseSequence */
    0,    0,    0,    1,                            /* RecordCount */
    22,   0,    0,    0,    1,                      /* Length, ..., KeyLen */
    10,   'v',  'a',  'l',  'u',  'e',  0           /* Value, HeaderCount */
};


/** @returns the big-endian number in the \p size bytes at \p data. */
static int64_t number(const unsigned char *data, int size) {
        int64_t value = (signed char)data[0];
        int i;
        for (i = 1; i < size; i++)
                value = value << 8 | data[i];
        return value;
}


/**
 * @brief Send the request \p body to the first broker of \p bootstraps.
 *
 * @param response gets \p size bytes of the response after the CorrId, for
 *        requests about one topic named "mock".
 */
static void request(const char *bootstraps,
                    unsigned char ApiKey,
                    unsigned char ApiVersion,
                    const unsigned char *body,
                    size_t body_size,
                    unsigned char *response,
                    ssize_t size) {
        unsigned char head[] = {0, 0, 0, 0,          /* Size */
                                0, ApiKey,           /* ApiKey */
                                0, ApiVersion,       /* ApiVersion */
                                0, 0, 0, 0,          /* CorrId */
                                0xff, 0xff};         /* ClientId */
        unsigned char before[8];                     /* Size, CorrId */
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *address;
        char host[256], port[16];
        int s, parsed;

        head[2] = (sizeof(head) - 4 + body_size) >> 8;
        head[3] = (sizeof(head) - 4 + body_size) & 0xff;

        parsed = sscanf(bootstraps, "%255[^:]:%15[0-9]", host, port);
        TEST_ASSERT(parsed == 2, "unexpected bootstrap servers %s", bootstraps);
        TEST_ASSERT(!getaddrinfo(host, port, &hints, &address),
                    "cannot resolve %s", bootstraps);
        s = socket(address->ai_family, SOCK_STREAM, 0);
        TEST_ASSERT(!connect(s, address->ai_addr, address->ai_addrlen),
                    "cannot connect to %s", bootstraps);
        freeaddrinfo(address);

        TEST_ASSERT(send(s, head, sizeof(head), 0) == sizeof(head) &&
                        send(s, body, body_size, 0) == (ssize_t)body_size,
                    "cannot send ApiKey %d", ApiKey);
        TEST_ASSERT(recv(s, before, 8, MSG_WAITALL) == 8 &&
                        recv(s, response, size, MSG_WAITALL) == size,
                    "incomplete response to ApiKey %d", ApiKey);
        TEST_ASSERT(number(before, 4) == size + 4,
                    "ApiKey %d: response of %" PRId64 " bytes", ApiKey,
                    number(before, 4));
        close(s);
}


/**
 * @brief Produce \p records, which have the size of \c batch.
 *
 * @returns the error code.
 */
static rd_kafka_resp_err_t
produce(const char *bootstraps, const unsigned char *records) {
        static const unsigned char before[] = {
            0xff,     0xff,                   /* TransactionalId */
            0xff,     0xff,                   /* Acks */
            INT32(100),                       /* TimeoutMs */
            INT32(1), TOPIC, INT32(1),        /* Topic, #Partitions */
            INT32(0), INT32(sizeof(batch))};  /* Partition, Size */
        unsigned char body[sizeof(before) + sizeof(batch)];
        /* #Topics, Topic, #Partitions, Partition, ErrorCode, BaseOffset,
         * LogAppendTimeMs, ThrottleTime */
        unsigned char response[4 + 6 + 4 + 4 + 2 + 8 + 8 + 4];

        memcpy(body, before, sizeof(before));
        memcpy(body + sizeof(before), records, sizeof(batch));
        request(bootstraps, 0 /*Produce*/, 3, body, sizeof(body), response,
                sizeof(response));
        return (rd_kafka_resp_err_t)number(response + 18, 2);
}


/** @returns a client of the cluster at \p bootstraps. */
static rd_kafka_t *create_client(const char *bootstraps) {
        rd_kafka_conf_t *conf;

        test_conf_init(&conf, NULL, 30);
        test_conf_set(conf, "bootstrap.servers", bootstraps);
        return test_create_handle(RD_KAFKA_PRODUCER, conf);
}


/** @returns the leader epoch that ListOffsets returns for \p spec. */
static int32_t list_leader_epoch(rd_kafka_t *rk, rd_kafka_OffsetSpec_t spec) {
        rd_kafka_topic_partition_list_t *partitions =
            rd_kafka_topic_partition_list_new(1);
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        const rd_kafka_ListOffsetsResultInfo_t **infos;
        const rd_kafka_topic_partition_t *partition;
        rd_kafka_event_t *event;
        size_t cnt;
        int32_t leader_epoch;

        rd_kafka_topic_partition_list_add(partitions, topic, 0)->offset = spec;
        rd_kafka_ListOffsets(rk, partitions, NULL, queue);
        event = rd_kafka_queue_poll(queue, 30 * 1000);
        TEST_ASSERT(event && !rd_kafka_event_error(event),
                    "ListOffsets failed: %s",
                    event ? rd_kafka_event_error_string(event) : "timed out");
        infos = rd_kafka_ListOffsets_result_infos(
            rd_kafka_event_ListOffsets_result(event), &cnt);
        TEST_ASSERT(cnt == 1, "%d results for one partition", (int)cnt);
        partition = rd_kafka_ListOffsetsResultInfo_topic_partition(infos[0]);
        TEST_CALL_ERR__(partition->err);
        leader_epoch = rd_kafka_topic_partition_get_leader_epoch(partition);

        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        rd_kafka_topic_partition_list_destroy(partitions);
        return leader_epoch;
}


/**
 * @brief ListOffsets returns the leader epoch of the earliest and the latest
 *        offset: 0, because the partition has had one leader.
 */
static void do_test_list_offsets_leader_epoch(void) {
        rd_kafka_mock_cluster_t *mcluster;
        const char *bootstraps;
        rd_kafka_t *rk;
        int32_t epoch;

        SUB_TEST_QUICK();

        mcluster = test_mock_cluster_new(1, &bootstraps);
        TEST_CALL_ERR__(rd_kafka_mock_topic_create(mcluster, topic, 1, 1));
        rk = create_client(bootstraps);

        epoch = list_leader_epoch(rk, RD_KAFKA_OFFSET_SPEC_EARLIEST);
        TEST_ASSERT_LATER(epoch == 0,
                          "empty log, earliest offset: expected leader epoch "
                          "0 (KIP-320), got %" PRId32,
                          epoch);
        epoch = list_leader_epoch(rk, RD_KAFKA_OFFSET_SPEC_LATEST);
        TEST_ASSERT_LATER(epoch == 0,
                          "empty log, latest offset: expected leader epoch "
                          "0 (KIP-320), got %" PRId32,
                          epoch);

        TEST_CALL_ERR__(produce(bootstraps, batch));

        epoch = list_leader_epoch(rk, RD_KAFKA_OFFSET_SPEC_EARLIEST);
        TEST_ASSERT_LATER(epoch == 0,
                          "earliest offset: expected leader epoch 0 (KIP-320)"
                          ", got %" PRId32,
                          epoch);
        epoch = list_leader_epoch(rk, RD_KAFKA_OFFSET_SPEC_LATEST);
        TEST_ASSERT_LATER(epoch == 0,
                          "latest offset: expected leader epoch 0 (KIP-320)"
                          ", got %" PRId32,
                          epoch);

        rd_kafka_destroy(rk);
        test_mock_cluster_destroy(mcluster);

        SUB_TEST_PASS();
}


/**
 * @brief ListOffsets returns INVALID_REQUEST for a partition that a request
 *        contains twice.
 */
static void do_test_list_offsets_duplicate_partition(void) {
        static const unsigned char body[] = {
            0xff,     0xff,  0xff,    0xff,                 /* ReplicaId */
            INT32(1), TOPIC, INT32(2),                      /* #Partitions */
            INT32(0),                                       /* Partition */
            0xff,     0xff,  0xff,    0xff, 0xff, 0xff, 0xff, 0xff, /* latest */
            INT32(0),                                       /* Partition */
            0xff,     0xff,  0xff,    0xff, 0xff, 0xff, 0xff, 0xfe, /* earliest */
        };
        /* #Topics, Topic, #Partitions, twice: Partition, ErrorCode,
         * Timestamp, Offset */
        unsigned char response[4 + 6 + 4 + 2 * (4 + 2 + 8 + 8)];
        rd_kafka_mock_cluster_t *mcluster;
        const char *bootstraps;
        int i;

        SUB_TEST_QUICK();

        mcluster = test_mock_cluster_new(1, &bootstraps);
        TEST_CALL_ERR__(rd_kafka_mock_topic_create(mcluster, topic, 1, 1));

        request(bootstraps, 2 /*ListOffsets*/, 1, body, sizeof(body), response,
                sizeof(response));
        for (i = 0; i < 2; i++) {
                rd_kafka_resp_err_t err =
                    (rd_kafka_resp_err_t)number(response + 18 + i * 22, 2);
                TEST_ASSERT_LATER(err == RD_KAFKA_RESP_ERR_INVALID_REQUEST,
                                  "partition named twice, result %d: expected "
                                  "INVALID_REQUEST, got %s",
                                  i, rd_kafka_err2name(err));
        }

        test_mock_cluster_destroy(mcluster);

        SUB_TEST_PASS();
}


/**
 * @brief Produce returns CORRUPT_MESSAGE for a batch with a wrong checksum,
 *        and does not append it.
 */
static void do_test_produce_wrong_checksum(void) {
        unsigned char corrupt[sizeof(batch)];
        rd_kafka_mock_cluster_t *mcluster;
        const char *bootstraps;
        rd_kafka_resp_err_t err;
        rd_kafka_t *rk;
        int64_t low, high;

        SUB_TEST_QUICK();

        mcluster = test_mock_cluster_new(1, &bootstraps);
        TEST_CALL_ERR__(rd_kafka_mock_topic_create(mcluster, topic, 1, 1));

        TEST_CALL_ERR__(produce(bootstraps, batch));

        memcpy(corrupt, batch, sizeof(batch));
        corrupt[sizeof(batch) - 2] ^= 1; /* in the value */
        err = produce(bootstraps, corrupt);
        /* INVALID_MSG is librdkafka's name of CORRUPT_MESSAGE */
        TEST_ASSERT_LATER(err == RD_KAFKA_RESP_ERR_INVALID_MSG,
                          "batch with a wrong checksum: expected INVALID_MSG, "
                          "got %s",
                          rd_kafka_err2name(err));

        rk = create_client(bootstraps);
        TEST_CALL_ERR__(rd_kafka_query_watermark_offsets(rk, topic, 0, &low,
                                                         &high, 30 * 1000));
        TEST_ASSERT_LATER(high == 1,
                          "one intact batch and one with a wrong checksum: "
                          "expected high watermark 1, got %" PRId64,
                          high);

        rd_kafka_destroy(rk);
        test_mock_cluster_destroy(mcluster);

        SUB_TEST_PASS();
}


int main_mock_cluster(int argc, char **argv) {
        TEST_SKIP_MOCK_CLUSTER(0);

        do_test_list_offsets_leader_epoch();
        do_test_list_offsets_duplicate_partition();
        do_test_produce_wrong_checksum();

        return 0;
}
