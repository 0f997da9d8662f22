// What the files of the emulated runtime share: its streams, events and graphs.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_STATE_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_STATE_H_

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "compute/backend/cuda/emulated/cuda_runtime.h"

namespace longhaul::compute::emulated {

// Of a stream. Runs with the runtime's mutex held and calls nothing of the runtime's face.
struct Operation {
  std::function<bool()> run;  // whether it ran: a wait for a stream that hangs does not
  bool takes_time;            // one microsecond of the emulated device
};

// A place in a stream, of an event and of whatever waits for it.
struct Point {
  std::shared_ptr<EmulatedStream> stream;
  bool reached = false;
  int64_t microseconds = 0;  // of the stream's time when it was reached
};

// One call of the runtime: holds its mutex, under which everything here lies.
class Call {
 public:
  Call();
  // The error of a device that is lost, or of a kernel that failed. Then nothing else happens, and
  // what was queued is gone.
  cudaError_t error() const { return error_; }

 private:
  std::unique_lock<std::mutex> lock_;
  cudaError_t error_;
};

// Remembers the error for the calling thread's cudaGetLastError, and returns it.
cudaError_t Note(cudaError_t error);

// The error if there is no such device.
cudaError_t CheckDevice(int device);
int CurrentDevice();  // of the calling thread

// The stream itself, or for null the default stream of the thread's current device.
const std::shared_ptr<EmulatedStream>& Resolve(cudaStream_t stream);

// Queues it, or keeps it for the graph if the stream is being captured.
void Push(EmulatedStream& stream, Operation operation);

// Run what is queued, all of it or up to the point; false if that cannot be.
bool Drain(EmulatedStream& stream);
bool Drain(Point& point);
void DropEverything();
// All streams, as calls do that wait for the device, which never return if one hangs: dies then.
void DrainDevice(const char* call);

// Where the calling thread captures a stream, ends that in failure: what the caller does is not
// allowed then.
bool SpoilsCapture();

Counts& MutableCounts();

// Runs `thread` for each thread of each block, with CUDA's variables set. Crashes where a card
// would hang or misbehave: threads of one block (or warp) that wait at different places, or leave
// while others wait for them.
void RunKernel(dim3 grid, dim3 block, const std::function<void()>& thread);

}  // namespace longhaul::compute::emulated

struct EmulatedGraph {
  std::vector<longhaul::compute::emulated::Operation> operations;
  bool spoilt = false;  // by a call that is not allowed during a capture
};

struct EmulatedGraphExec : EmulatedGraph {};

struct EmulatedStream {
  int device = 0;
  std::deque<longhaul::compute::emulated::Operation> operations;
  int64_t microseconds = 0;  // that its operations took
  bool destroyed = false;    // by the caller; it still runs what it has
  std::unique_ptr<EmulatedGraph> capture;
};

struct EmulatedEvent {
  bool has_time = false;
  std::shared_ptr<longhaul::compute::emulated::Point> point;  // null: never recorded
};

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_STATE_H_
