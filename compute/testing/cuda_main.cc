// Runs the operators' tests on card 0, or says how many were skipped for want of one.
#include <cstdio>

#include "compute/backend/backend.h"
#include "gtest/gtest.h"

namespace {

constexpr int kSkipped = 77;  // by convention of automake and ctest

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const absl::Status status = longhaul::compute::MakeCudaBackend(0, longhaul::RealClock()).status();
  if (status.code() == absl::StatusCode::kFailedPrecondition) {
    std::printf("%d tests skipped: %s\n", testing::UnitTest::GetInstance()->total_test_count(),
                std::string(status.message()).c_str());
    return kSkipped;
  }
  return RUN_ALL_TESTS();
}
