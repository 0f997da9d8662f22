#include "worker/comm/collective.h"

#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/comm/gloo_mesh.h"
#include "worker/comm/testing/collective_contract.h"
#include "worker/comm/testing/in_process_mesh.h"

namespace longhaul::worker {
namespace {

using ::testing::Combine;
using ::testing::HasSubstr;
using ::testing::Range;
using ::testing::Values;

// Pieces so small that the largest sum takes several.
constexpr size_t kPiece = 1000;

std::unique_ptr<CollectiveGroup> InProcess(int size) {
  return std::make_unique<MeshGroup>(MakeInProcessMeshes(size, RealClock()), kPiece);
}

INSTANTIATE_TEST_SUITE_P(InProcess, CollectiveTest,
                         Combine(Values(CollectiveCase{"in process", &InProcess}), Range(2, 6)));

// Debian's Gloo is not instrumented: what its atomics order would be reported as races.
#ifndef __SANITIZE_THREAD__

absl::Time In(absl::Duration duration) { return RealClock().Now() + duration; }

std::vector<std::string> Names(int size) {
  std::vector<std::string> names;
  for (int rank = 0; rank < size; ++rank) names.push_back(absl::StrCat("replica ", rank));
  return names;
}

std::unique_ptr<GlooRendezvous> Listen(int rank, int size,
                                       absl::Duration connect_max = absl::Seconds(60)) {
  auto listening = GlooRendezvous::Listen(
      {.rank = rank, .names = Names(size), .host = "127.0.0.1", .connect_max = connect_max},
      RealClock());
  EXPECT_TRUE(listening.ok()) << listening.status();
  return *std::move(listening);
}

std::vector<std::unique_ptr<Mesh>> MakeGlooMeshes(int size) {
  std::signal(SIGPIPE, SIG_IGN);  // as every process with such a mesh
  std::vector<std::unique_ptr<GlooRendezvous>> listening;
  std::vector<std::string> published;
  for (int rank = 0; rank < size; ++rank) {
    listening.push_back(Listen(rank, size));
    published.push_back(listening.back()->rendezvous());
  }
  std::vector<std::unique_ptr<Mesh>> meshes(size);
  OnThreads(size, [&](int rank) {
    auto mesh = listening[rank]->Connect(published);
    EXPECT_TRUE(mesh.ok()) << mesh.status();
    meshes[rank] = *std::move(mesh);
  });
  return meshes;
}

std::unique_ptr<CollectiveGroup> OverGloo(int size) {
  return std::make_unique<MeshGroup>(MakeGlooMeshes(size), kPiece);
}

INSTANTIATE_TEST_SUITE_P(Gloo, CollectiveTest,
                         Combine(Values(CollectiveCase{"Gloo", &OverGloo}), Range(2, 6)));

TEST(GlooRendezvous, RefusesWhatNoReplicaPublishes) {
  const auto own = Listen(0, 3), other = Listen(1, 3), third = Listen(2, 3);
  const auto refusal = [&](std::vector<std::string> published) {
    const absl::Status status = own->Connect(published).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  const std::string good = other->rendezvous();
  EXPECT_THAT(refusal({}), HasSubstr("of 0 replicas instead of 3"));
  EXPECT_THAT(refusal({own->rendezvous(), good}), HasSubstr("of 2 replicas"));
  EXPECT_THAT(refusal({own->rendezvous(), "", good}),
              HasSubstr("the rendezvous of replica 1 has 0 bytes"));
  EXPECT_THAT(refusal({own->rendezvous(), good + "x", good}), HasSubstr("bytes instead of"));
  EXPECT_THAT(refusal({own->rendezvous(), std::string(good.size(), '\xff'), good}),
              HasSubstr("has no internet address"));
}

// Which side of a pair dials is Gloo's choice, by the ports; the one that dials learns later.
TEST(GlooRendezvous, APeerThatDoesNotConnectIsNamed) {
  const auto own = Listen(0, 2, absl::Milliseconds(200));
  const auto other = Listen(1, 2);
  const absl::Time start = RealClock().Now();
  auto mesh = own->Connect({own->rendezvous(), other->rendezvous()});
  std::vector<uint8_t> received(4);
  const absl::Status status =
      mesh.ok() ? (*mesh)->Exchange(1, {}, absl::MakeSpan(received), In(absl::Milliseconds(50)))
                : mesh.status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("replica 1"));
  EXPECT_LT(RealClock().Now() - start, absl::Seconds(30));
}

TEST(GlooRendezvous, CancelEndsConnect) {
  const auto own = Listen(0, 2), other = Listen(1, 2);
  const absl::Time start = RealClock().Now();
  std::thread cancels([&] { own->Cancel(); });
  auto mesh = own->Connect({own->rendezvous(), other->rendezvous()});
  cancels.join();
  std::vector<uint8_t> received(4);
  EXPECT_FALSE(mesh.ok() &&
               (*mesh)->Exchange(1, {}, absl::MakeSpan(received), In(absl::Seconds(60))).ok());
  EXPECT_LT(RealClock().Now() - start, absl::Seconds(50));
}

TEST(GlooRendezvous, RefusesAHostThatIsNotHere) {
  const auto listening = GlooRendezvous::Listen(
      {.rank = 0, .names = Names(2), .host = "192.0.2.1", .connect_max = absl::Seconds(1)},
      RealClock());
  ASSERT_FALSE(listening.ok());
  EXPECT_EQ(listening.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(listening.status().message()),
              HasSubstr("replica 0 cannot listen on 192.0.2.1"));
}

#endif  // __SANITIZE_THREAD__

}  // namespace
}  // namespace longhaul::worker
