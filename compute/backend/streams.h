// What overlap needs of a device: points in its streams that others can wait for, streams of copies
// beside the operators, and timers on the device's own clock.
#ifndef LONGHAUL_COMPUTE_BACKEND_STREAMS_H_
#define LONGHAUL_COMPUTE_BACKEND_STREAMS_H_

#include <cstddef>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace longhaul::compute {

// A point in a stream, reached when everything that was queued on the stream before it has run. May
// be dropped before that, on any thread; must not outlive its Backend, which uses again what it
// took of the device.
class Mark {
 public:
  virtual ~Mark() = default;
  // Whether it is reached; never waits. The device's error, if it has one. One thread at a time.
  virtual absl::StatusOr<bool> Reached() = 0;
};

// Copies that run beside the operators, one after the other in the order of the calls. One thread
// at a time may call it, which need not be the backend's. Must not outlive its Backend; when
// it is dropped it waits for what it has queued.
//
// Neither memory may be written, nor what is copied to be read, before a mark behind the copy is
// reached. Copies from or to host memory that is not pinned make the caller wait.
class CopyStream {
 public:
  virtual ~CopyStream() = default;
  // What is queued from now on waits for the mark, on the device. The caller does not wait.
  virtual absl::Status After(const Mark& mark) = 0;
  virtual absl::Status ToDevice(void* device, const void* host, size_t bytes) = 0;
  virtual absl::Status ToHost(void* host, const void* device, size_t bytes) = 0;
  // The point in this stream now.
  virtual absl::StatusOr<std::unique_ptr<Mark>> MarkNow() = 0;
};

// The time that the device spent between calls of Begin and End, by its own clock: what the host
// does meanwhile does not count. Of the backend's compute stream, and called by its thread.
class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  // In turns, beginning with Begin.
  virtual absl::Status Begin() = 0;
  virtual absl::Status End() = 0;
  // The sum over the pairs that ran since the last Take. After Synchronize these are all; a pair
  // that has not run yet counts in a later Take.
  virtual absl::StatusOr<absl::Duration> Take() = 0;
};

// Work that is queued again and again, the same each time: a CUDA graph, which costs the host one
// call. Called by its Backend's thread; must not outlive the Backend.
class Recording {
 public:
  virtual ~Recording() = default;
  // Queues what `work` queues on the backend's compute stream: by calling it, or, once the device
  // knows it, without. So `work` must queue the same operators and copies on the same device memory
  // with the same values each time; uploads, marks, results for the host and waits have no place in
  // it. Its error ends the call.
  virtual absl::Status Run(absl::FunctionRef<absl::Status()> work) = 0;
};

// Waits until `reached` holds, asking it now and again; its error ends the wait. DeadlineExceeded
// after `deadline` of `clock`, with `what` was waited for.
absl::Status WaitUntilReached(absl::FunctionRef<absl::StatusOr<bool>()> reached, Clock& clock,
                              absl::Time deadline, absl::string_view what);

// Waits for the mark; as above.
absl::Status WaitFor(Mark& mark, Clock& clock, absl::Time deadline, absl::string_view what);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_STREAMS_H_
