#include "coordinator/plan/table.h"

#include "coordinator/plan/format.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

TEST(FormatTable, AlignsColumnsAndLeavesNoSpacesAtTheEnd) {
  EXPECT_EQ(FormatTable({Align::kLeft, Align::kRight, Align::kLeft},
                        {{"NODE", "MS", "X"}, {"a", "12.5", "long"}, {"longer", "1", ""}}),
            "NODE      MS  X\n"
            "a       12.5  long\n"
            "longer     1\n");
}

TEST(Format, NumbersKeepThreeDigits) {
  EXPECT_EQ(FormatSeconds(0.8123), "812 ms");
  EXPECT_EQ(FormatSeconds(1.346), "1.35 s");
  EXPECT_EQ(FormatSeconds(0.9996), "1 s");
  EXPECT_EQ(FormatSeconds(123.4), "123 s");
  EXPECT_EQ(FormatSeconds(2.5e-4), "250 us");
  EXPECT_EQ(FormatSeconds(0), "0 us");
  EXPECT_EQ(FormatRate(125e6), "1000 Mbit/s");
  EXPECT_EQ(FormatRate(62500), "0.5 Mbit/s");
  EXPECT_EQ(FormatMebibytes(1 << 18), "0.25 MiB");
  EXPECT_EQ(FormatPercent(0.914), "91 %");
}

TEST(Format, RatesAndComparisons) {
  EXPECT_EQ(FormatFlops(50e9), "50 GFLOP/s");
  EXPECT_EQ(FormatFlops(1.25e12), "1.25 TFLOP/s");
  EXPECT_EQ(FormatComparison(0.95, 1), "950 ms (5 % less)");
  EXPECT_EQ(FormatComparison(1, 1), "1 s (as long)");
  EXPECT_EQ(FormatComparison(1.17, 1), "1.17 s (17 % more)");
  EXPECT_EQ(FormatComparison(2.6, 1), "2.6 s (2.6 times as long)");
}

TEST(Format, Words) {
  EXPECT_EQ(FormatCount(1, "stage"), "1 stage");
  EXPECT_EQ(FormatCount(3, "stage"), "3 stages");
  EXPECT_EQ(JoinWords({"a"}), "a");
  EXPECT_EQ(JoinWords({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(LargestPart({.weights = 3 << 19, .optimizer = 2 << 20}), "optimizer 2 MiB");
  EXPECT_EQ(LargestPart({.weights = 3 << 19, .working_weights = 3 << 18, .optimizer = 2 << 20}),
            "weights 2.25 MiB");
}

}  // namespace
}  // namespace longhaul::coordinator
