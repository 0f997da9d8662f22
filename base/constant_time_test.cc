#include "base/constant_time.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

TEST(EqualInConstantTime, OnlyTheSecretItselfIsEqual) {
  EXPECT_TRUE(EqualInConstantTime("secret", "secret"));
  for (const char* given : {"", "s", "secre", "secreT", "Secret", "secrets", "secretsecret"}) {
    EXPECT_FALSE(EqualInConstantTime(given, "secret")) << given;
  }
}

TEST(EqualInConstantTime, NothingEqualsAnEmptySecret) {
  EXPECT_FALSE(EqualInConstantTime("", ""));
  EXPECT_FALSE(EqualInConstantTime("x", ""));
}

}  // namespace
}  // namespace longhaul
