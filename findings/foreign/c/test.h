/* The part of librdkafka's tests/test.h that mock_cluster.c uses, so that the
 * file compiles here and in librdkafka's tests. */
#ifndef _TEST_H_
#define _TEST_H_

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdkafka.h"
#include "rdkafka_mock.h"

extern int test_failcnt;

#define TEST_SAY(...) fprintf(stderr, __VA_ARGS__)

#define TEST_FAIL_LATER(...)                                                   \
        do {                                                                   \
                test_failcnt++;                                                \
                TEST_SAY("%s:%d: %s: ", __FILE__, __LINE__, __FUNCTION__);     \
                TEST_SAY(__VA_ARGS__);                                         \
                TEST_SAY("\n");                                                \
        } while (0)

#define TEST_ASSERT_LATER(expr, ...)                                           \
        do {                                                                   \
                if (!(expr))                                                   \
                        TEST_FAIL_LATER(__VA_ARGS__);                          \
        } while (0)

/* A precondition that fails ends the program with another status than a
 * failed test. */
#define TEST_ASSERT(expr, ...)                                                 \
        do {                                                                   \
                if (!(expr)) {                                                 \
                        TEST_FAIL_LATER(__VA_ARGS__);                          \
                        exit(2);                                               \
                }                                                              \
        } while (0)

#define TEST_CALL_ERR__(call)                                                  \
        do {                                                                   \
                rd_kafka_resp_err_t _err = (call);                             \
                TEST_ASSERT(!_err, "%s: %s", #call, rd_kafka_err2str(_err));   \
        } while (0)

#define SUB_TEST_QUICK()                                                       \
        int test_failcnt_before = test_failcnt;                                \
        TEST_SAY("[ %s ]\n", __FUNCTION__)

#define SUB_TEST_PASS()                                                        \
        TEST_SAY("[ %s: %s ]\n", __FUNCTION__,                                 \
                 test_failcnt == test_failcnt_before ? "PASS" : "FAIL")

#define TEST_SKIP_MOCK_CLUSTER(RET)

void test_conf_init(rd_kafka_conf_t **conf, void *unused, int timeout);
void test_conf_set(rd_kafka_conf_t *conf, const char *name, const char *val);
rd_kafka_t *test_create_handle(int mode, rd_kafka_conf_t *conf);
rd_kafka_mock_cluster_t *test_mock_cluster_new(int broker_cnt,
                                               const char **bootstraps);
void test_mock_cluster_destroy(rd_kafka_mock_cluster_t *mcluster);

#endif /* _TEST_H_ */
