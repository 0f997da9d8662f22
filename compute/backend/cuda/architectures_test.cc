#include "compute/backend/cuda/architectures.h"

#include "gtest/gtest.h"

namespace longhaul::compute {
namespace {

// The rules of nvcc's manual, "GPU Compilation" and "Architecture-Specific Features".
TEST(Architectures, WhatRunsOnWhichCard) {
  constexpr char kBuilt[] = "80-real,86-real,90";
  EXPECT_TRUE(HasCodeFor(kBuilt, 8, 0));
  EXPECT_TRUE(HasCodeFor(kBuilt, 8, 6));
  EXPECT_TRUE(HasCodeFor(kBuilt, 8, 9)) << "machine code of 8.6, as the major number is the same";
  EXPECT_TRUE(HasCodeFor(kBuilt, 9, 0));
  EXPECT_TRUE(HasCodeFor(kBuilt, 12, 0)) << "by the PTX of 9.0";
  EXPECT_FALSE(HasCodeFor(kBuilt, 7, 5));
  EXPECT_FALSE(HasCodeFor("86-real,90", 8, 0)) << "of a higher minor number";
  EXPECT_FALSE(HasCodeFor("90-real", 10, 0)) << "no PTX";
  EXPECT_TRUE(HasCodeFor("80-virtual", 10, 0));
  EXPECT_TRUE(HasCodeFor("90a", 9, 0));
  EXPECT_FALSE(HasCodeFor("90a", 10, 0));
  EXPECT_TRUE(HasCodeFor("native", 7, 5)) << "cannot be known";
}

TEST(Architectures, ForPeople) {
  EXPECT_EQ(DescribeArchitectures("80-real,86-real,90"), "8.0, 8.6, 9.0 and later");
  EXPECT_EQ(DescribeArchitectures("90-real"), "9.0");
  EXPECT_EQ(DescribeArchitectures("120"), "12.0 and later");
  EXPECT_EQ(DescribeArchitectures("native"), "native");
}

}  // namespace
}  // namespace longhaul::compute
