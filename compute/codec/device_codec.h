// Codecs on the device that the tensor is on, so that only encoded bytes leave and reach it.
#ifndef LONGHAUL_COMPUTE_CODEC_DEVICE_CODEC_H_
#define LONGHAUL_COMPUTE_CODEC_DEVICE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "compression/codec.h"
#include "compute/backend/backend.h"
#include "compute/backend/codec_kernels.h"

namespace longhaul::compute {

// Encode and Decode are queued on the backend as operators are: nobody waits. A value; `backend`
// must outlive it.
class DeviceCodec {
 public:
  // None for a codec without a form on devices, as zstd: its values cross as they are, and the host
  // encodes.
  static std::optional<DeviceCodec> Find(const Backend& backend, const compression::Codec& codec);

  const compression::Codec& codec() const { return *codec_; }
  // Of so many values; does not depend on them.
  size_t EncodedSize(int64_t elements) const {
    return codec_->EncodedSizeMax(static_cast<size_t>(elements));
  }

  // Writes EncodedSize(values.elements) bytes, those of Codec::Encode on the values as floats. They
  // are floats or BFloat16s. `bytes` is device memory aligned as a Backend allocates it.
  absl::Status Encode(const DeviceSpan& values, void* bytes) const;

  // The other way round, from as many bytes; values are rounded where they are BFloat16s. The host
  // cannot see here what it refuses when it decodes by itself: *damaged, of the device, becomes 1
  // then and what was encoded so is no number, so that no step counts it.
  absl::Status Decode(const void* bytes, const DeviceSpan& values, uint32_t* damaged) const;

 private:
  struct Form;
  static const Form kForms[];
  DeviceCodec(const Backend& backend, const compression::Codec& codec, const Form& form)
      : kernels_(&backend.codec_kernels()), codec_(&codec), form_(&form) {}
  static absl::Status Check(const DeviceSpan& values, const void* bytes);

  const CodecKernels* kernels_;
  const compression::Codec* codec_;
  const Form* form_;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_CODEC_DEVICE_CODEC_H_
