#include "base/host_port.h"

#include <string>

#include "gtest/gtest.h"

namespace longhaul {
namespace {

// "host port", with "6 " before it for what stood in brackets.
std::string Split(absl::string_view text) {
  const auto parts = SplitHostPort(text);
  if (!parts.has_value()) return "none";
  return (parts->bracketed ? "6 " : "") + std::string(parts->host) + " " + std::string(parts->port);
}

TEST(SplitHostPort, TakesTheLastColonAndTheBracketsAway) {
  EXPECT_EQ(Split("node-3.example.org:7070"), "node-3.example.org 7070");
  EXPECT_EQ(Split("[::1]:0"), "6 ::1 0");
  EXPECT_EQ(Split("::1:0"), "::1 0");
  EXPECT_EQ(Split("host:"), "host ");
  EXPECT_EQ(Split("[]:1"), "[] 1");
  for (const char* bad : {"", "host", ":7070", ":"}) EXPECT_EQ(Split(bad), "none") << bad;
}

}  // namespace
}  // namespace longhaul
