// Names that a run's file may use are those of what exists: `run` may not depend on the libraries
// that implement them.
#include <string>
#include <vector>

#include "compression/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "run/run_spec.h"
#include "schedule/program.h"

namespace longhaul {
namespace {

using ::testing::UnorderedElementsAreArray;

TEST(Consistency, ARunMayNameEveryCodecAndNoOther) {
  std::vector<std::string> codecs = {"auto"};
  for (const compression::Codec* codec : compression::AllCodecs()) {
    codecs.emplace_back(codec->name());
  }
  EXPECT_THAT(run::CodecNames(), UnorderedElementsAreArray(codecs));
}

TEST(Consistency, ARunMayNameEveryScheduleAndNoOther) {
  EXPECT_THAT(run::ScheduleNames(), UnorderedElementsAreArray(schedule::ScheduleNames()));
}

}  // namespace
}  // namespace longhaul
