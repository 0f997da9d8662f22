#include "coordinator/plan/codecs.h"

#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

constexpr double kElements = 1 << 16;

std::string Chosen(absl::string_view name, double bytes_per_second) {
  const Link link = {0.01, bytes_per_second, true};
  const auto codec = ChooseCodec(name, kElements, link, link);
  EXPECT_TRUE(codec.ok()) << codec.status();
  return codec.ok() ? std::string((*codec)->name()) : "";
}

TEST(ChooseCodec, AutoCompressesOnlyWhereTheLinkIsSlowerThanTheCodec) {
  EXPECT_EQ(Chosen("auto", 1e6), "zstd");
  EXPECT_EQ(Chosen("auto", 10e6), "zstd");
  EXPECT_EQ(Chosen("auto", 1.25e9), "none");
}

TEST(ChooseCodec, AutoIsNeverLossy) {
  for (double rate = 1e3; rate < 1e11; rate *= 2) {
    const auto codec = compression::FindCodec(Chosen("auto", rate));
    ASSERT_TRUE(codec.ok());
    EXPECT_TRUE((*codec)->lossless()) << rate;
  }
}

TEST(ChooseCodec, ANamedCodecIsObeyed) {
  EXPECT_EQ(Chosen("int8", 1e12), "int8");
  EXPECT_EQ(Chosen("none", 1e3), "none");
  const Link link = {0.01, 1e6, true};
  EXPECT_EQ(ChooseCodec("lz5", kElements, link, link).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::coordinator
