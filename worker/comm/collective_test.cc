#include "worker/comm/collective.h"

#include <bit>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <future>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/comm/gloo_mesh.h"
#include "worker/comm/testing/in_process_mesh.h"

namespace longhaul::worker {
namespace {

using ::testing::Combine;
using ::testing::HasSubstr;
using ::testing::Range;
using ::testing::Values;

void OnThreads(int count, const std::function<void(int rank)>& work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) threads.emplace_back([&work, rank] { work(rank); });
  for (std::thread& thread : threads) thread.join();
}

absl::Time In(absl::Duration duration) { return RealClock().Now() + duration; }

using MakeMeshes = std::vector<std::unique_ptr<Mesh>> (*)(int size);

class CollectiveTest : public testing::TestWithParam<std::tuple<MakeMeshes, int>> {
 protected:
  void SetUp() override {
    const auto& [make_meshes, size] = GetParam();
    size_ = size;
    for (std::unique_ptr<Mesh>& mesh : make_meshes(size)) {
      collectives_.push_back(MakeCollective(std::move(mesh)));
    }
  }

  // Of every rank: calls on a thread each.
  std::vector<absl::Status> All(const std::function<absl::Status(int rank)>& call) {
    std::vector<absl::Status> statuses(size_);
    OnThreads(size_, [&](int rank) { statuses[rank] = call(rank); });
    return statuses;
  }

  int size_ = 0;
  std::vector<std::unique_ptr<Collective>> collectives_;
};

// Of very different sizes, so that every order of additions rounds in its own way.
template <typename T>
std::vector<std::vector<T>> RandomValues(int ranks, size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<T>> values(ranks, std::vector<T>(count));
  for (std::vector<T>& of_rank : values) {
    for (T& value : of_rank) {
      value = std::ldexp(static_cast<T>(random()) / 4294967296 - T{0.5},
                         static_cast<int>(random() % 12));
    }
  }
  return values;
}

// The sum as the contract has it, of one element: a tree over the ranks from `first` on.
template <typename T>
T Tree(const std::vector<T>& leaves, size_t first, size_t count) {
  if (count == 1) return leaves[first];
  return Tree(leaves, first, count / 2) + Tree(leaves, first + count / 2, count / 2);
}

template <typename T>
std::vector<T> ExpectedSum(const std::vector<std::vector<T>>& values) {
  size_t power = 1;
  while (2 * power <= values.size()) power *= 2;
  std::vector<T> sum;
  for (size_t i = 0; i < values[0].size(); ++i) {
    std::vector<T> leaves;
    for (size_t rank = 0; rank < power; ++rank) {
      leaves.push_back(values[rank][i]);
      if (rank + power < values.size()) leaves.back() += values[rank + power][i];
    }
    sum.push_back(Tree(leaves, 0, power));
  }
  return sum;
}

TEST_P(CollectiveTest, SumsInTheOrderOfTheTreeWithTheSameBitsEverywhere) {
  for (const size_t count : {1u, 2u, 3u, 7u, 64u, 4099u}) {
    const auto values = RandomValues<float>(size_, count, 5);
    const std::vector<float> expected = ExpectedSum(values);
    auto sums = values;
    for (const absl::Status& status : All([&](int rank) {
           return collectives_[rank]->AllReduceSum(absl::MakeSpan(sums[rank]),
                                                   In(absl::Seconds(60)));
         })) {
      EXPECT_EQ(status, absl::OkStatus());
    }
    for (const std::vector<float>& sum : sums) EXPECT_EQ(sum, expected) << count;
  }
}

TEST_P(CollectiveTest, SumsDoublesAndBroadcastsInOneOrder) {
  const auto doubles = RandomValues<double>(size_, 33, 6);
  const std::vector<double> expected = ExpectedSum(doubles);
  auto sums = doubles;
  auto floats = RandomValues<float>(size_, 100, 7);
  const std::vector<float> first = floats[0];
  std::vector<std::vector<double>> verdicts(size_, {0.0, 0.0});
  verdicts[0] = {1.5, -2.5};
  for (const absl::Status& status : All([&](int rank) {
         Collective& collective = *collectives_[rank];
         const absl::Time deadline = In(absl::Seconds(60));
         absl::Status done = collective.SumDoubles(absl::MakeSpan(sums[rank]), deadline);
         done.Update(collective.Broadcast(absl::MakeSpan(floats[rank]), deadline));
         done.Update(collective.BroadcastDoubles(absl::MakeSpan(verdicts[rank]), deadline));
         return done;
       })) {
    EXPECT_EQ(status, absl::OkStatus());
  }
  for (int rank = 0; rank < size_; ++rank) {
    EXPECT_EQ(sums[rank], expected);
    EXPECT_EQ(floats[rank], first);
    EXPECT_EQ(verdicts[rank], verdicts[0]);
  }
}

TEST_P(CollectiveTest, ADeadReplicaEndsTheCallsOfAll) {
  const int dead = size_ - 1;
  const absl::Time start = RealClock().Now();
  std::vector<std::vector<float>> sums(size_, std::vector<float>(1000, 1));
  const std::vector<absl::Status> statuses = All([&](int rank) {
    if (rank == dead) {
      collectives_[rank].reset();
      return absl::OkStatus();
    }
    absl::Status status =
        collectives_[rank]->AllReduceSum(absl::MakeSpan(sums[rank]), In(absl::Seconds(60)));
    // One that ends takes its connections with it.
    if (!status.ok()) collectives_[rank].reset();
    return status;
  });
  for (int rank = 0; rank < dead; ++rank) {
    EXPECT_EQ(statuses[rank].code(), absl::StatusCode::kUnavailable) << statuses[rank];
    EXPECT_THAT(std::string(statuses[rank].message()), HasSubstr("replica "));
  }
  EXPECT_LT(RealClock().Now() - start, absl::Seconds(50));
}

TEST_P(CollectiveTest, AReplicaThatNeverComesIsNamedAtTheDeadline) {
  std::vector<float> values(1000, 1);
  const absl::Status status =
      collectives_[0]->AllReduceSum(absl::MakeSpan(values), In(absl::Milliseconds(50)));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("did not come in time"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("replica "));
}

TEST_P(CollectiveTest, CancelEndsAWait) {
  std::vector<float> values(1000, 1);
  const absl::Time start = RealClock().Now();
  absl::Status status;
  std::promise<void> begins;
  std::thread waits([&] {
    begins.set_value();
    status = collectives_[0]->AllReduceSum(absl::MakeSpan(values), In(absl::Seconds(60)));
  });
  begins.get_future().wait();
  // Gloo's waits cannot be seen from outside; it is there by then.
  std::mutex mutex;
  std::condition_variable nothing;
  std::unique_lock<std::mutex> lock(mutex);
  RealClock().WaitUntil(lock, nothing, In(absl::Milliseconds(30)), [] { return false; });
  collectives_[0]->Cancel(absl::AbortedError("node n is lost"));
  waits.join();
  EXPECT_EQ(status, absl::AbortedError("node n is lost"));
  collectives_[0]->Cancel(absl::AbortedError("another reason"));
  status = collectives_[0]->Broadcast(absl::MakeSpan(values), In(absl::Seconds(60)));
  EXPECT_EQ(status, absl::AbortedError("node n is lost"));
  EXPECT_LT(RealClock().Now() - start, absl::Seconds(50));
}

std::vector<std::unique_ptr<Mesh>> InProcessMeshes(int size) {
  return MakeInProcessMeshes(size, RealClock());
}

INSTANTIATE_TEST_SUITE_P(InProcess, CollectiveTest, Combine(Values(&InProcessMeshes), Range(2, 6)));

// Debian's Gloo is not instrumented: what its atomics order would be reported as races.
#ifndef __SANITIZE_THREAD__

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

INSTANTIATE_TEST_SUITE_P(Gloo, CollectiveTest, Combine(Values(&MakeGlooMeshes), Range(2, 6)));

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
