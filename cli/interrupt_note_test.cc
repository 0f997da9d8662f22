#include "cli/interrupt_note.h"

#include <csignal>

#include "gtest/gtest.h"

namespace longhaul::cli {
namespace {

TEST(InterruptNoteDeathTest, IsSaidAndTheSignalEndsTheProcessAllTheSame) {
  EXPECT_EXIT(
      {
        const InterruptNote note("run first goes on");
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "^longhaul: run first goes on\n$");
}

TEST(InterruptNoteDeathTest, IsNotSaidAfterItsLife) {
  EXPECT_EXIT(
      {
        { const InterruptNote note("run first goes on"); }
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "^$");
}

}  // namespace
}  // namespace longhaul::cli
