// How long a data set may take on its way to a node.
#include <string>
#include <vector>

#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/family.h"
#include "worker/comm/in_process_transport.h"
#include "worker/host/testing/host_testing.h"
#include "worker/host/worker_host.h"

namespace longhaul::worker {
namespace {

using ::testing::ElementsAre;

TEST(StageJobData, EachChunkMayTakeTheLongestTimeOfATransfer) {
  TestFolder folder;
  FakeClock clock;
  FakeControl control;
  FakeRemote remote;
  InProcessNetwork network(clock);
  const std::unique_ptr<Transport> transport = network.MakeTransport();
  ExchangeRouter router(clock);
  WorkerHostOptions options;
  options.facts.name = "node";
  options.folder = folder.path() + "/node";
  options.transfer_max = absl::Minutes(10);

  const std::string text(2 * data::kChunkBytes + 1000, 'x');
  ASSERT_TRUE(WriteFileAtomically(folder.path() + "/text", text).ok());
  const data::DatasetIndex index = *data::IndexFile(folder.path() + "/text");
  remote.SetData(index, text);
  std::vector<absl::Duration> left;
  remote.OnFetchChunk([&](absl::Time deadline) {
    left.push_back(deadline - clock.Now());
    clock.Advance(absl::Minutes(9));
  });
  run::RunSpec spec = TestSpec("r");
  spec.data.id = index.Id();
  spec.data.tokens = static_cast<int64_t>(index.bytes);
  const int ops = static_cast<int>(model::BuildGraph(spec.model)->ops.size());

  WorkerHost host(options, TestDependencies(clock, control, remote, *transport, router));
  host.MakeRegister();
  host.OnMessage(Accepted{absl::Seconds(10), absl::Seconds(1)});
  host.OnMessage(TestAssignment(spec, {ops}));
  control.WaitFor<Ready>();
  EXPECT_THAT(left, ElementsAre(absl::Minutes(10), absl::Minutes(10), absl::Minutes(10)));
  // The coordinator hears that it goes on.
  EXPECT_THAT(control.TakeTexts(), ElementsAre("preparing of r 1.1", "preparing of r 1.1",
                                               "preparing of r 1.1", "ready of r 1.1"));
}

}  // namespace
}  // namespace longhaul::worker
