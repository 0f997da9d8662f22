// The bytes of docs/formats.md, as made by tools/make_codec_golden.py, which shares no code with
// this folder.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "compression/codec.h"
#include "compression/frame.h"

namespace longhaul::compression {
namespace {

namespace fs = std::filesystem;

constexpr char kFolder[] = "tests/golden/codecs";

std::string Read(const fs::path& path) {
  absl::StatusOr<std::string> bytes = ReadFile(path.string(), 1 << 20);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *std::move(bytes) : "";
}

absl::Span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::vector<float> AsValues(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

std::string Bytes(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

class CodecGolden : public ::testing::TestWithParam<std::string> {
 protected:
  fs::path File(absl::string_view suffix) const {
    return fs::path(kFolder) / absl::StrCat(GetParam(), ".", suffix);
  }
};

TEST_P(CodecGolden, EncodesToTheGoldenBytes) {
  const std::vector<float> values = AsValues(Read(File("f32")));
  for (const Codec* codec : AllCodecs()) {
    // Which bytes zstd chooses is its library's affair; that ours can be read is not.
    if (codec->name() == "zstd") continue;
    std::string out(codec->EncodedSizeMax(values.size()), '\xee');
    out.resize(codec->Encode(values, {reinterpret_cast<uint8_t*>(out.data()), out.size()}));
    EXPECT_EQ(out, Read(File(codec->name()))) << codec->name();
  }
}

TEST_P(CodecGolden, DecodesTheGoldenBytes) {
  const std::vector<float> values = AsValues(Read(File("f32")));
  for (const Codec* codec : AllCodecs()) {
    std::vector<float> decoded(values.size());
    const absl::Status status =
        codec->Decode(AsBytes(Read(File(codec->name()))), absl::MakeSpan(decoded));
    ASSERT_TRUE(status.ok()) << codec->name() << ": " << status;
    const std::string suffix = codec->lossless() ? "f32" : absl::StrCat(codec->name(), ".f32");
    EXPECT_EQ(Bytes(decoded), Read(File(suffix))) << codec->name();
  }
}

INSTANTIATE_TEST_SUITE_P(All, CodecGolden,
                         ::testing::Values("empty", "pair", "normal", "special", "ties", "largest",
                                           "blocks", "constant"),
                         [](const auto& info) { return info.param; });

TEST(CodecGoldenBad, EveryBadFileIsDataLoss) {
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(kFolder) / "bad")) {
    const std::vector<std::string> parts = absl::StrSplit(entry.path().filename().string(), '.');
    ASSERT_EQ(parts.size(), 3u) << entry.path();
    size_t count = 0;
    ASSERT_TRUE(absl::SimpleAtoi(parts[1], &count));
    std::vector<float> decoded(count);
    const absl::Status status =
        (*FindCodec(parts[2]))->Decode(AsBytes(Read(entry.path())), absl::MakeSpan(decoded));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << entry.path() << ": " << status;
    ++files;
  }
  EXPECT_GE(files, 24u);
}

FrameHeader Header(FrameKey key, absl::string_view run, uint16_t codec, ElementType element,
                   uint64_t elements, uint64_t payload_bytes) {
  FrameHeader header;
  header.key = key;
  header.run_hash = RunHash(run);
  header.codec = codec;
  header.element = element;
  header.elements = elements;
  header.payload_bytes = payload_bytes;
  return header;
}

void ExpectGoldenFrame(const std::string& name, const FrameHeader& expected) {
  const std::string frame = Read(fs::path(kFolder) / absl::StrCat("frame_", name, ".bin"));
  const absl::StatusOr<FrameHeader> parsed = ParseFrame(frame);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->key, expected.key);
  EXPECT_EQ(parsed->run_hash, expected.run_hash);
  EXPECT_EQ(parsed->codec, expected.codec);
  EXPECT_EQ(parsed->element, expected.element);
  EXPECT_EQ(parsed->elements, expected.elements);
  EXPECT_EQ(parsed->payload_bytes, expected.payload_bytes);
  std::string written(frame.size(), '\0');
  const std::string payload = frame.substr(kFrameHeaderBytes);
  written.replace(kFrameHeaderBytes, payload.size(), payload);
  WriteFrameHeader(expected, payload, written.data());
  EXPECT_EQ(written, frame);
}

TEST(FrameGolden, Gradient) {
  ExpectGoldenFrame("none", Header({{1, 4}, 0, 17, 3, 2, FrameKind::kGradient, 0}, "first", 0,
                                   ElementType::kFloat32, 2, 8));
}

TEST(FrameGolden, EncodedActivation) {
  ExpectGoldenFrame(
      "int8", Header({{0xffffffffu, 0x01020304u}, 5, ~uint64_t{0}, 6, 7, FrameKind::kActivation, 8},
                     "other-run.2", 2, ElementType::kFloat32, 257, 265));
}

TEST(FrameGolden, Norms) {
  ExpectGoldenFrame("norms", Header({{1, 1}, 0, 1, 0, 0, FrameKind::kNorms, 0}, "first", 0,
                                    ElementType::kFloat64, 3, 24));
}

}  // namespace
}  // namespace longhaul::compression
