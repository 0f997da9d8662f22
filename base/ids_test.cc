#include "base/ids.h"

#include <string>

#include "gtest/gtest.h"

namespace longhaul {
namespace {

TEST(ValidateName, AcceptsOrdinaryNames) {
  for (const char* name : {"a", "first", "node-1.example_x", "0run"}) {
    EXPECT_TRUE(ValidateName("run name", name).ok()) << name;
  }
}

TEST(ValidateName, RefusesWhatCouldEscapeAFileOrATerminal) {
  for (const std::string& name :
       {std::string(""), std::string("../up"), std::string("a/b"), std::string("-rf"),
        std::string(".hidden"), std::string("a\0b", 3), std::string("a\nb"), std::string("\x1b[2J"),
        std::string("é"), std::string(64, 'a')}) {
    const absl::Status status = ValidateName("run name", name);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(status.message()).find('\x1b'), std::string::npos);
  }
}

TEST(FrameKey, TextNamesEveryPart) {
  const FrameKey key{{1, 4}, 6, 17, 3, 2, FrameKind::kTiedGradient, 5};
  EXPECT_EQ(ToString(key),
            "epoch 1.4 pipeline 6 step 17 micro-batch 3 stage 2 tied-gradient index 5");
  // What every run has only one of is not named.
  const FrameKey usual{{1, 4}, 0, 17, 3, 2, FrameKind::kGradient, 0};
  EXPECT_EQ(ToString(usual), "epoch 1.4 step 17 micro-batch 3 stage 2 gradient");
}

TEST(Epoch, TermOutranksNumber) { EXPECT_LT((Epoch{1, 9}), (Epoch{2, 0})); }

}  // namespace
}  // namespace longhaul
