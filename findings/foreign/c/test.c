/* The functions of test.h, and the program that runs mock_cluster.c. */
#include "test.h"

int test_failcnt;

void test_conf_init(rd_kafka_conf_t **conf, void *unused, int timeout) {
        *conf = rd_kafka_conf_new();
}

void test_conf_set(rd_kafka_conf_t *conf, const char *name, const char *val) {
        char errstr[512];
        TEST_ASSERT(rd_kafka_conf_set(conf, name, val, errstr,
                                      sizeof(errstr)) == RD_KAFKA_CONF_OK,
                    "%s", errstr);
}

rd_kafka_t *test_create_handle(int mode, rd_kafka_conf_t *conf) {
        char errstr[512];
        rd_kafka_t *rk = rd_kafka_new(mode, conf, errstr, sizeof(errstr));
        TEST_ASSERT(rk, "%s", errstr);
        return rk;
}

rd_kafka_mock_cluster_t *test_mock_cluster_new(int broker_cnt,
                                               const char **bootstraps) {
        rd_kafka_conf_t *conf;
        rd_kafka_mock_cluster_t *mcluster;

        test_conf_init(&conf, NULL, 0);
        mcluster = rd_kafka_mock_cluster_new(
            test_create_handle(RD_KAFKA_PRODUCER, conf), broker_cnt);
        TEST_ASSERT(mcluster, "no mock cluster");
        *bootstraps = rd_kafka_mock_cluster_bootstraps(mcluster);
        return mcluster;
}

void test_mock_cluster_destroy(rd_kafka_mock_cluster_t *mcluster) {
        rd_kafka_t *rk = rd_kafka_mock_cluster_handle(mcluster);
        rd_kafka_mock_cluster_destroy(mcluster);
        rd_kafka_destroy(rk);
}

int main_mock_cluster(int argc, char **argv);

int main(int argc, char **argv) {
        TEST_SAY("librdkafka %s\n", rd_kafka_version_str());
        main_mock_cluster(argc, argv);
        return test_failcnt > 0;
}
