#include <algorithm>
#include <boost/context/fiber.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "compute/backend/cuda/emulated/state.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace longhaul::compute::emulated {
namespace {

constexpr size_t kStackBytes = size_t{64} << 10;
constexpr unsigned kWarp = 32;

enum class State { kReady, kAtBlock, kAtWarp, kDone };

struct Fiber {
  boost::context::fiber context;  // where it goes on
  std::unique_ptr<char[]> stack;
  void* fake_stack = nullptr;  // AddressSanitizer's
  State state = State::kReady;
  uint3 index;
  uint64_t offered = 0;  // to its warp
};

// Stacks stay with their fibers from block to block.
struct KeptStack {
  boost::context::stack_context allocate() const { return {}; }
  void deallocate(boost::context::stack_context&) const {}
};

// The one block that runs, with the runtime's mutex held.
struct Block {
  boost::context::fiber scheduler;  // where RunBlock goes on
  void* fake_stack = nullptr;
  const void* stack_bottom = nullptr;
  size_t stack_bytes = 0;
  std::vector<Fiber> fibers;
  Fiber* running = nullptr;
  const std::function<void()>* thread = nullptr;
};
Block the_block;
uint64_t runs = 0;  // of kernels

void StartSwitch([[maybe_unused]] void** save, [[maybe_unused]] const void* bottom,
                 [[maybe_unused]] size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(save, bottom, bytes);
#endif
}
void FinishSwitch([[maybe_unused]] void* fake, [[maybe_unused]] const void** bottom,
                  [[maybe_unused]] size_t* bytes) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake, bottom, bytes);
#endif
}

void Wait(State state) {
  Fiber& fiber = *the_block.running;
  fiber.state = state;
  StartSwitch(&fiber.fake_stack, the_block.stack_bottom, the_block.stack_bytes);
  the_block.scheduler = std::move(the_block.scheduler).resume();
  FinishSwitch(fiber.fake_stack, &the_block.stack_bottom, &the_block.stack_bytes);
}

boost::context::fiber Main(boost::context::fiber&& scheduler) {
  Fiber& fiber = *the_block.running;
  the_block.scheduler = std::move(scheduler);
  FinishSwitch(nullptr, &the_block.stack_bottom, &the_block.stack_bytes);
  (*the_block.thread)();
  fiber.state = State::kDone;
  StartSwitch(nullptr, the_block.stack_bottom, the_block.stack_bytes);  // its stack is over
  return std::move(the_block.scheduler);
}

void Resume(Fiber& fiber) {
  the_block.running = &fiber;
  threadIdx = fiber.index;
  StartSwitch(&the_block.fake_stack, fiber.stack.get(), kStackBytes);
  fiber.context = std::move(fiber.context).resume();
  FinishSwitch(the_block.fake_stack, nullptr, nullptr);
}

void Prepare(Fiber& fiber, unsigned index) {
  if (!fiber.stack) fiber.stack = std::make_unique<char[]>(kStackBytes);
  fiber.state = State::kReady;
  fiber.index = {index % blockDim.x, index / blockDim.x % blockDim.y,
                 index / (blockDim.x * blockDim.y)};
  boost::context::stack_context stack;
  stack.size = kStackBytes;
  stack.sp = fiber.stack.get() + kStackBytes;  // it grows down
  fiber.context = boost::context::fiber(std::allocator_arg,
                                        boost::context::preallocated(stack.sp, stack.size, stack),
                                        KeptStack{}, &Main);
}

// Lets fibers [begin, end) go on if all wait at `state`; whether it did.
bool Release(State state, size_t begin, size_t end) {
  const auto first = the_block.fibers.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = the_block.fibers.begin() + static_cast<std::ptrdiff_t>(end);
  if (!std::all_of(first, last, [&](const Fiber& fiber) { return fiber.state == state; })) {
    return false;
  }
  std::for_each(first, last, [](Fiber& fiber) { fiber.state = State::kReady; });
  return true;
}

void RunBlock(size_t threads, bool backwards) {
  the_block.fibers.resize(std::max(the_block.fibers.size(), threads));
  for (size_t i = 0; i < threads; ++i) Prepare(the_block.fibers[i], static_cast<unsigned>(i));
  while (true) {
    for (size_t i = 0; i < threads; ++i) {
      Fiber& fiber = the_block.fibers[backwards ? threads - 1 - i : i];
      if (fiber.state == State::kReady) Resume(fiber);
    }
    bool released = Release(State::kAtBlock, 0, threads);
    for (size_t warp = 0; warp < threads; warp += kWarp) {
      released |= Release(State::kAtWarp, warp, std::min<size_t>(warp + kWarp, threads));
    }
    if (released) continue;
    const size_t done = static_cast<size_t>(std::count_if(
        the_block.fibers.begin(), the_block.fibers.begin() + static_cast<std::ptrdiff_t>(threads),
        [](const Fiber& fiber) { return fiber.state == State::kDone; }));
    LH_CHECK(done == threads, "a kernel hangs: ", done, " of ", threads,
             " threads of a block have ended while the others wait for them or at other places");
    return;
  }
}

}  // namespace

int Lane() { return static_cast<int>((the_block.running - the_block.fibers.data()) % kWarp); }

void RunKernel(dim3 grid, dim3 block, const std::function<void()>& thread) {
  const size_t threads = size_t{block.x} * block.y * block.z;
  blockDim = block;
  gridDim = grid;
  the_block.thread = &thread;
  const bool backwards = ++runs % 2 == 0;
  const unsigned blocks = grid.x * grid.y * grid.z;
  for (unsigned i = 0; i < blocks; ++i) {
    const unsigned at = backwards ? blocks - 1 - i : i;
    blockIdx = {at % grid.x, at / grid.x % grid.y, at / (grid.x * grid.y)};
    RunBlock(threads, backwards);
  }
}

void Shuffle(void* value, size_t bytes, int from_lane) {
  Fiber& fiber = *the_block.running;
  LH_CHECK(bytes <= sizeof(fiber.offered) && from_lane >= 0 && from_lane < static_cast<int>(kWarp));
  std::memcpy(&fiber.offered, value, bytes);
  __syncwarp();
  const Fiber& from = *(&fiber - Lane() + from_lane);
  std::memcpy(value, &from.offered, bytes);
  __syncwarp();
}

}  // namespace longhaul::compute::emulated

void __syncthreads() {
  using namespace longhaul::compute::emulated;  // NOLINT: the names of CUDA are global
  Wait(State::kAtBlock);
}

void __syncwarp() {
  using namespace longhaul::compute::emulated;  // NOLINT: as above
  Wait(State::kAtWarp);
}
