#include "checkpoint/safetensors.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A file with any header, however wrong.
std::string File(absl::string_view header, absl::string_view data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(header.size() >> (8 * i)));
  return absl::StrCat(bytes, header, data);
}

template <typename T>
absl::string_view BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string ErrorOf(absl::string_view bytes) {
  const auto file = ParseSafetensors(bytes);
  EXPECT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), absl::StatusCode::kDataLoss);
  return std::string(file.status().message());
}

// As written by the reference implementation (Python package safetensors 0.8.0) from
// {"b": float64 [1.5, -2], "a": float32 0 to 5 as [2, 3], "c": float32 [0, 4]}.
std::string ReferenceFile() {
  return File(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},)"
      R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[16,40]},)"
      R"("c":{"dtype":"F32","shape":[0,4],"data_offsets":[40,40]}})",
      absl::HexStringToBytes("000000000000f83f00000000000000c0"
                             "000000000000803f0000004000004040000080400000a040"));
}

TEST(Safetensors, WritesTheBytesOfTheReference) {
  const std::vector<double> b = {1.5, -2};
  const std::vector<float> a = {0, 1, 2, 3, 4, 5};
  const std::vector<TensorView> tensors = {
      {"b", "F64", {2}, BytesOf(b)}, {"a", "F32", {2, 3}, BytesOf(a)}, {"c", "F32", {0, 4}, ""}};
  EXPECT_EQ(WriteSafetensors(tensors, {{"format", "pt"}}), ReferenceFile());
}

TEST(Safetensors, ReadsTheBytesOfTheReference) {
  const std::string bytes = ReferenceFile();
  const auto file = ParseSafetensors(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata.at("format"), "pt");
  ASSERT_EQ(file->tensors.size(), 3u);
  EXPECT_EQ(file->tensors[0].name, "b");
  EXPECT_EQ(file->tensors[0].dtype, "F64");
  const TensorView* const a = file->Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_THAT(a->shape, ElementsAre(2, 3));
  float last = 0;
  std::memcpy(&last, a->bytes.data() + 20, 4);
  EXPECT_EQ(last, 5.0f);
  EXPECT_EQ(file->Find("d"), nullptr);
}

TEST(Safetensors, RoundTripsAndAligns) {
  const std::vector<float> values = {1, 2, 3};
  for (const std::string name : {"x", "xy", "xyz", "h.0.\u00e9\"\\"}) {
    const std::vector<TensorView> tensors = {{name, "F32", {3}, BytesOf(values)},
                                             {"scalar", "F32", {}, BytesOf(values).substr(0, 4)}};
    const std::string bytes = WriteSafetensors(tensors, {});
    const auto file = ParseSafetensors(bytes);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_NE(file->Find(name), nullptr);
    EXPECT_EQ(file->Find(name)->bytes, BytesOf(values));
    EXPECT_EQ((file->Find(name)->bytes.data() - bytes.data()) % 8, 0);
    EXPECT_TRUE(file->metadata.empty());
  }
}

TEST(Safetensors, EmptyFileOfTensors) {
  EXPECT_TRUE(ParseSafetensors(WriteSafetensors({}, {})).ok());
  EXPECT_TRUE(ParseSafetensors(File("{}", "")).ok());
}

TEST(Safetensors, RefusesBadHeaders) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("shorter than its header's length"));
  EXPECT_THAT(ErrorOf("1234567"), HasSubstr("shorter than its header's length"));
  EXPECT_THAT(ErrorOf(std::string(8, '\xFF')), HasSubstr("does not lie in the file"));
  EXPECT_THAT(ErrorOf(File("{}", "").substr(0, 9)), HasSubstr("does not lie in the file"));
  EXPECT_THAT(ErrorOf(File("", "")), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf(File("[]", "")), HasSubstr("not an object"));
  EXPECT_THAT(ErrorOf(File("{}x", "")), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf(File("{\"\xFF\":1}", "")), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf(File(R"({"t":{"shape":[1e400]}})", "")), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf(File(std::string(100000, '['), "")), HasSubstr("deeper"));
  EXPECT_THAT(ErrorOf(File(R"({"__metadata__":[]})", "")), HasSubstr("metadata"));
  EXPECT_THAT(ErrorOf(File(R"({"__metadata__":{"a":1}})", "")), HasSubstr("metadata 'a'"));
}

TEST(Safetensors, RefusesBadTensors) {
  const std::string four(4, '\0');
  const auto error = [&](absl::string_view entry) {
    const std::string message = ErrorOf(File(absl::StrCat("{\"t\":", entry, "}"), four));
    EXPECT_THAT(message, HasSubstr("'t'"));
    return message;
  };
  EXPECT_THAT(error("1"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[1]})"), HasSubstr("'data_offsets' is missing"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1})"),
              HasSubstr("unknown key 'x'"));
  EXPECT_THAT(error(R"({"dtype":"F31","shape":[1],"data_offsets":[0,4]})"),
              HasSubstr("dtype 'F31'"));
  EXPECT_THAT(error(R"({"dtype":1,"shape":[1],"data_offsets":[0,4]})"), HasSubstr("'dtype'"));
  EXPECT_THAT(error(R"({"dtype":"F64","shape":[1],"data_offsets":[0,4]})"),
              HasSubstr("4 bytes do not fit its dtype F64 and shape [1]"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), HasSubstr("'shape'"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})"), HasSubstr("'shape'"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})"), HasSubstr("'shape'"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})"), HasSubstr("offsets"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[1],"data_offsets":[-4,0]})"), HasSubstr("offsets"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4.0]})"), HasSubstr("offsets"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), HasSubstr("offsets"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[1],"data_offsets":[1,5]})"), HasSubstr("offsets"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]})"),
              HasSubstr("offsets"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[9223372036854775807],"data_offsets":[0,4]})"),
              HasSubstr("do not fit"));
  // 2^32 * 2^32 * 4 is 0 modulo 2^64, as is any product with 2^62 * 4.
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})"),
              HasSubstr("do not fit"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]})"),
              HasSubstr("do not fit"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0]})"),
              HasSubstr("do not fit"));
}

TEST(Safetensors, RefusesDuplicatesOverlapsAndHoles) {
  const std::string eight(8, '\0');
  const std::string first = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const std::string second = R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})";
  const auto error = [&](absl::string_view rest) {
    return ErrorOf(File(absl::StrCat("{", first, ",", rest, "}"), eight));
  };
  EXPECT_TRUE(ParseSafetensors(File(absl::StrCat("{", first, ",\"b\":", second, "}"), eight)).ok());
  EXPECT_THAT(error(absl::StrCat("\"a\":", second)), HasSubstr("'a' is given twice"));
  EXPECT_THAT(error(R"("b":{"dtype":"U8","shape":[6],"data_offsets":[2,8]})"),
              HasSubstr("'b' overlaps"));
  EXPECT_THAT(error(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})"),
              HasSubstr("'b' overlaps"));
  EXPECT_THAT(error(R"("b":{"dtype":"U8","shape":[3],"data_offsets":[5,8]})"),
              HasSubstr("'b' leaves a hole"));
  EXPECT_THAT(ErrorOf(File(absl::StrCat("{", first, "}"), eight)),
              HasSubstr("4 bytes at the end belong to no tensor"));
}

TEST(Safetensors, TruncationIsAlwaysFound) {
  const std::string bytes = ReferenceFile();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(ParseSafetensors(absl::string_view(bytes).substr(0, length)).ok()) << length;
  }
}

TEST(SafetensorsDeathTest, WritingNonsenseIsABug) {
  const TensorView four = {"t", "F32", {1}, "1234"};
  EXPECT_DEATH(WriteSafetensors({four, four}, {}), "given twice");
  EXPECT_DEATH(WriteSafetensors({TensorView{"t", "F32", {2}, "1234"}}, {}), "t");
}

}  // namespace
}  // namespace longhaul::checkpoint
