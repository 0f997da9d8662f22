#include <functional>
#include <limits>

#include "absl/strings/str_replace.h"
#include "base/json.h"
#include "coordinator/plan/planner.h"
#include "coordinator/plan/testing.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

Plan SomePlan() {
  PlanRequest request = SmallRequest({SomeNode("a", "east"), SomeNode("b", "west")}, {}, 2);
  return *MakePlan(request);
}

TEST(PlanJson, GoesBothWays) {
  const Plan plan = SomePlan();
  const absl::StatusOr<Plan> read = PlanFromJson(PlanToJson(plan));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PlanToJson(*read), PlanToJson(plan));
  ASSERT_EQ(read->stages.size(), 2u);
  for (size_t stage = 0; stage < 2; ++stage) {
    EXPECT_EQ(read->stages[stage].node, plan.stages[stage].node);
    EXPECT_EQ(read->stages[stage].range, plan.stages[stage].range);
    EXPECT_EQ(read->stages[stage].slots, plan.stages[stage].slots);
    EXPECT_EQ(read->stages[stage].memory.total(), plan.stages[stage].memory.total());
    EXPECT_EQ(read->stages[stage].forward_seconds, plan.stages[stage].forward_seconds);
    EXPECT_EQ(read->stages[stage].backward_seconds, plan.stages[stage].backward_seconds);
  }
  EXPECT_EQ(read->schedule, plan.schedule);
  EXPECT_EQ(read->link_codecs, plan.link_codecs);
  EXPECT_EQ(read->wan_links, 1);
  EXPECT_EQ(read->step_seconds, plan.step_seconds);
  EXPECT_EQ(read->numeric_classes, plan.numeric_classes);
  EXPECT_EQ(read->numeric_classes, std::vector<std::string>{"avx2"});
  EXPECT_EQ(read->reasons, plan.reasons);
}

TEST(PlanJson, TextThatIsNotUtf8IsReplacedNotThrown) {
  Plan plan = SomePlan();
  plan.numeric_classes = {"\xff"};
  EXPECT_TRUE(PlanFromJson(PlanToJson(plan)).ok());
}

TEST(PlanJson, APlanOfBeforeHasOneNumericClass) {
  Json json = *ParseJson(PlanToJson(SomePlan()), 1 << 20);
  json.erase("numeric_classes");
  EXPECT_FALSE(PlanFromJson(json.dump()).ok());
  json["numeric_class"] = "old";
  EXPECT_EQ(PlanFromJson(json.dump())->numeric_classes, std::vector<std::string>{"old"});
}

TEST(PlanJson, RefusesWhatIsNoPlan) {
  const Json good = *ParseJson(PlanToJson(SomePlan()), 1 << 20);
  const std::function<void(Json&)> harms[] = {
      [](Json& j) { j["schema"] = 2; },
      [](Json& j) { j["extra"] = 1; },
      [](Json& j) { j.erase("schedule"); },
      [](Json& j) { j["schedule"] = "zigzag"; },
      [](Json& j) { j["stages"] = Json::array(); },
      [](Json& j) { j["stages"] = 3; },
      [](Json& j) { j["numeric_classes"] = "avx2"; },
      [](Json& j) { j["numeric_classes"] = {1}; },
      [](Json& j) {
        j["numeric_classes"] = {"a", "b", "c"};
      },
      [](Json& j) { j["stages"][0] = nullptr; },
      [](Json& j) { j["stages"][0]["node"] = "../etc/passwd"; },
      [](Json& j) { j["stages"][0]["first_op"] = 1; },
      [](Json& j) { j["stages"][1]["first_op"] = 1; },
      [](Json& j) { j["stages"][0]["end_op"] = 0; },
      [](Json& j) { j["stages"][1]["end_op"] = int64_t{1} << 40; },
      [](Json& j) { j["stages"][0]["slots"] = 0; },
      [](Json& j) { j["stages"][0]["slots"] = 1.5; },
      [](Json& j) { j["stages"][0]["memory"]["weights"] = -1; },
      [](Json& j) { j["stages"][0]["memory"]["weights"] = std::numeric_limits<int64_t>::max(); },
      [](Json& j) { j["stages"][0]["forward_seconds"] = -1.0; },
      [](Json& j) { j["step_seconds"] = "1"; },
      [](Json& j) { j["link_codecs"] = Json::array(); },
      [](Json& j) { j["link_codecs"] = {"lz5"}; },
      [](Json& j) { j["link_codecs"] = {7}; },
      [](Json& j) { j["wan_links"] = 2; },
      [](Json& j) { j["reasons"] = {1}; },
      [](Json& j) { j = Json::array(); },
  };
  for (const auto& harm : harms) {
    Json bad = good;
    harm(bad);
    EXPECT_EQ(PlanFromJson(bad.dump()).status().code(), absl::StatusCode::kInvalidArgument)
        << bad.dump();
  }
  EXPECT_FALSE(PlanFromJson("").ok());
  EXPECT_FALSE(PlanFromJson(std::string(100000, '[')).ok());
}

}  // namespace
}  // namespace longhaul::coordinator
