#include "base/file.h"
#include "coordinator/plan/planner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ParseTopology, ReadsNodesAndLinks) {
  const absl::StatusOr<Topology> topology = ParseTopology(R"(
nodes:
  - {name: a1, site: east, host: a, host_cores: 8, threads: 4, gigaflops: 250,
     memory_gigabytes_per_second: 20, memory_mebibytes: 16384, numeric_class: avx2}
  - {name: b1, site: west, gigaflops: 1.5, memory_mebibytes: 1}
links:
  - {from: east, to: west, latency_milliseconds: 35, megabits_per_second: 400}
)",
                                                          "t.yaml");
  ASSERT_TRUE(topology.ok()) << topology.status();
  ASSERT_EQ(topology->nodes.size(), 2u);
  const NodeProfile& a = topology->nodes[0];
  EXPECT_EQ(a.name, "a1");
  EXPECT_EQ(a.site, "east");
  EXPECT_EQ(a.host, "a");
  EXPECT_EQ(a.host_cores, 8);
  EXPECT_EQ(a.threads, 4);
  EXPECT_EQ(a.flops_per_second, 250e9);
  EXPECT_EQ(a.bytes_per_second, 20e9);
  EXPECT_EQ(a.memory_bytes, int64_t{16} << 30);
  EXPECT_EQ(a.numeric_class, "avx2");
  EXPECT_EQ(topology->nodes[1].threads, 1);
  EXPECT_EQ(topology->nodes[1].flops_per_second, 1.5e9);
  ASSERT_EQ(topology->links.size(), 1u);
  EXPECT_DOUBLE_EQ(topology->links[0].latency_seconds, 0.035);
  EXPECT_DOUBLE_EQ(topology->links[0].bytes_per_second, 50e6);
}

TEST(ParseTopology, ReadsCards) {
  const absl::StatusOr<Topology> topology = ParseTopology(R"(
nodes:
  - {name: a, site: east, device: cuda, gigaflops: 60e3, bf16_gigaflops: 900e3, card: first,
     memory_gigabytes_per_second: 3300, memory_mebibytes: 81920}
  - {name: b, site: east, device: cpu, gigaflops: 1.5, memory_mebibytes: 1}
)",
                                                          "t.yaml");
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->nodes[0].device_kind, DeviceKind::kCuda);
  EXPECT_EQ(topology->nodes[0].flops_per_second, 60e12);
  EXPECT_EQ(topology->nodes[0].bfloat16_flops_per_second, 900e12);
  EXPECT_EQ(topology->nodes[0].device_uuid, "first");
  EXPECT_EQ(topology->nodes[0].numeric_class, "cuda");
  EXPECT_EQ(topology->nodes[1].device_kind, DeviceKind::kCpu);
  EXPECT_EQ(topology->nodes[1].numeric_class, "");
}

TEST(ParseTopology, RefusesCardsWithoutTheirRateAndProcessorsWithOne) {
  const auto error = [](const std::string& keys) {
    const auto topology = ParseTopology(
        "nodes:\n  - {name: a, site: east, gigaflops: 1, memory_mebibytes: 1,\n     " + keys +
            "}\n",
        "t.yaml");
    EXPECT_EQ(topology.status().code(), absl::StatusCode::kInvalidArgument) << keys;
    return std::string(topology.status().message());
  };
  EXPECT_THAT(error("device: cuda"),
              AllOf(StartsWith("t.yaml:3: 'nodes[0].device'"), HasSubstr("'bf16_gigaflops'")));
  EXPECT_THAT(error("bf16_gigaflops: 2"), HasSubstr("'device: cuda' only"));
  EXPECT_THAT(error("card: x"), StartsWith("t.yaml:3: 'nodes[0].card'"));
  EXPECT_THAT(error("device: tpu"), HasSubstr("expected one of cpu, cuda"));
}

// The example of docs/formats.md is the sample in deploy/, and says what it means.
TEST(ParseTopology, ReadsTheDocumentsExample) {
  const std::string sample = *ReadFile("deploy/examples/topology.yaml", 1 << 20);
  EXPECT_THAT(*ReadFile("docs/formats.md", 1 << 20), HasSubstr("```yaml\n" + sample + "```\n"));
  const absl::StatusOr<Topology> topology = ParseTopology(sample, "topology.yaml");
  ASSERT_TRUE(topology.ok()) << topology.status();
  ASSERT_EQ(topology->nodes.size(), 3u);
  EXPECT_EQ(topology->nodes[0].host, "rack-3");
  EXPECT_EQ(topology->nodes[0].host_cores, 16);
  EXPECT_EQ(topology->nodes[0].bytes_per_second, 40e9);
  EXPECT_TRUE(topology->nodes[0].trusted_network);
  EXPECT_EQ(topology->nodes[1].flops_per_second, 600e9);
  EXPECT_EQ(topology->nodes[2].site, "lisbon");
  EXPECT_EQ(topology->nodes[2].memory_bytes, int64_t{16} << 30);
  ASSERT_EQ(topology->links.size(), 3u);
  EXPECT_DOUBLE_EQ(topology->links[1].latency_seconds, 0.029);
  EXPECT_DOUBLE_EQ(topology->links[1].bytes_per_second, 25e6);
}

std::string ErrorOf(absl::string_view yaml) {
  const absl::StatusOr<Topology> topology = ParseTopology(yaml, "t.yaml");
  EXPECT_EQ(topology.status().code(), absl::StatusCode::kInvalidArgument) << yaml;
  return std::string(topology.status().message());
}

TEST(ParseTopology, ErrorsNameLineAndKey) {
  EXPECT_THAT(ErrorOf("nodes:\n"
                      "  - {name: a, site: east, gigaflops: 1, memory_mebibytes: 1}\n"
                      "  - {name: b, site: east, gigaflop: 1, memory_mebibytes: 1}\n"),
              AllOf(StartsWith("t.yaml:3:"), HasSubstr("gigaflop"), HasSubstr("gigaflops")));
  EXPECT_THAT(ErrorOf("nodes:\n"
                      "  - {name: a, site: east, gigaflops: 0, memory_mebibytes: 1}\n"),
              AllOf(StartsWith("t.yaml:2:"), HasSubstr("gigaflops")));
  EXPECT_THAT(ErrorOf("nodes:\n"
                      "  - {name: a, site: east, gigaflops: 1}\n"),
              AllOf(StartsWith("t.yaml:2:"), HasSubstr("memory_mebibytes")));
  EXPECT_THAT(ErrorOf("nodes:\n"
                      "  - {name: a, site: east, gigaflops: 1, memory_mebibytes: 1}\n"
                      "  - {name: a, site: east, gigaflops: 1, memory_mebibytes: 1}\n"),
              AllOf(StartsWith("t.yaml:3:"), HasSubstr("'a' is given twice")));
  EXPECT_THAT(ErrorOf("nodes:\n"
                      "  - {name: a/b, site: east, gigaflops: 1, memory_mebibytes: 1}\n"),
              AllOf(StartsWith("t.yaml:2:"), HasSubstr("a/b")));
  EXPECT_THAT(ErrorOf("nodes: []\n"), HasSubstr("at least one node"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("nodes"));
}

TEST(ParseTopology, LinksMustJoinSitesThatExistOnce) {
  const std::string node = "nodes: [{name: a, site: east, gigaflops: 1, memory_mebibytes: 1}]\n";
  EXPECT_THAT(ErrorOf(node + "links:\n  - {from: east, to: wset}\n"),
              AllOf(StartsWith("t.yaml:3:"), HasSubstr("no node has the site 'wset'")));
  EXPECT_THAT(ErrorOf(node + "links:\n  - {from: east, to: east}\n  - {from: east, to: east}\n"),
              AllOf(StartsWith("t.yaml:4:"), HasSubstr("is given twice")));
  EXPECT_THAT(ErrorOf(node + "links:\n  - {from: east, to: east, latency_milliseconds: -1}\n"),
              AllOf(StartsWith("t.yaml:3:"), HasSubstr("latency_milliseconds")));
}

}  // namespace
}  // namespace longhaul::coordinator
