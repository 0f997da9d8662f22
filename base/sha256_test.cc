#include "base/sha256.h"

#include <string>

#include "gtest/gtest.h"

namespace longhaul {
namespace {

// Examples of FIPS 180-4 (NIST, "SHA-256 example values").
TEST(Sha256, PublishedValues) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 parts;
  parts.Update("abcdbcdecdefdefgefghfghighij");
  parts.Update("hijkijkljklmklmnlmnomnopnopq");
  EXPECT_EQ(parts.FinishHex(), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(IsSha256Hex, RefusesEverythingElse) {
  EXPECT_TRUE(IsSha256Hex(Sha256Hex("x")));
  EXPECT_FALSE(IsSha256Hex(""));
  EXPECT_FALSE(IsSha256Hex(std::string(64, 'G')));
  EXPECT_FALSE(IsSha256Hex(std::string(63, 'a') + "/"));
}

}  // namespace
}  // namespace longhaul
