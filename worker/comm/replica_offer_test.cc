#include "worker/comm/replica_offer.h"

#include <string>
#include <vector>

#include "base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::worker {
namespace {

using ::testing::HasSubstr;

ReplicaOffer OnCard(const std::string& card, const std::string& id = "") {
  return {std::string("mesh\0\xff", 6), DeviceOffer{"nccl 2.28.9", card, id}};
}

const std::vector<std::string> kNames = {"replica 0", "replica 1", "replica 2"};

TEST(ReplicaOffer, ArrivesAsItWas) {
  const std::string id(128, '\0');
  for (const ReplicaOffer& offer :
       {ReplicaOffer{}, ReplicaOffer{std::string(9000, 'm'), {}}, OnCard("a"), OnCard("a", id)}) {
    const std::string bytes = EncodeOffer(offer);
    EXPECT_LE(bytes.size(), kRendezvousBytesMax);
    const auto arrived = DecodeOffer(bytes, "replica 1");
    ASSERT_TRUE(arrived.ok()) << arrived.status();
    EXPECT_EQ(*arrived, offer);
  }
}

TEST(ReplicaOffer, RefusesWhatNoReplicaPublishes) {
  const std::string good = EncodeOffer(OnCard("card", "id"));
  std::vector<std::string> bad = {"", std::string(1, '\2') + good.substr(1), good + "x",
                                  std::string("\1\xff\xff", 3)};
  for (size_t length = 1; length < good.size(); ++length) {
    // Cut behind the mesh it is the offer of a replica without a device.
    if (length != 9) bad.push_back(good.substr(0, length));
  }
  for (const char* const card : {"", "a\nb"}) bad.push_back(EncodeOffer(OnCard(card)));
  bad.push_back(EncodeOffer(OnCard(std::string(129, 'c'))));
  bad.push_back(EncodeOffer(OnCard("c", std::string(1025, 'i'))));
  for (const std::string& bytes : bad) {
    const absl::Status status = DecodeOffer(bytes, "replica 1").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bytes.size() << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the rendezvous of replica 1"));
  }
}

TEST(ReplicaOffer, DevicesSumWhereAllCanByOneLibraryOnCardsOfTheirOwn) {
  const std::vector<ReplicaOffer> good = {OnCard("a", "id"), OnCard("b"), OnCard("c")};
  EXPECT_EQ(WhyNotOnDevices(good, kNames), "");

  auto offers = good;
  offers[1].device.reset();
  EXPECT_EQ(WhyNotOnDevices(offers, kNames), "replica 1 cannot sum on a device");
  offers = good;
  offers[2].device->library = "nccl 2.20.5";
  EXPECT_EQ(WhyNotOnDevices(offers, kNames),
            "replica 2 has nccl 2.20.5, replica 0 has nccl 2.28.9");
  offers = good;
  offers[2].device->card = "b";
  EXPECT_EQ(WhyNotOnDevices(offers, kNames), "replica 2 and replica 1 share one card");
  offers = good;
  offers[0].device->id = "";
  EXPECT_NE(WhyNotOnDevices(offers, kNames), "");
}

}  // namespace
}  // namespace longhaul::worker
