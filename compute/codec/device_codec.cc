#include "compute/codec/device_codec.h"

#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace longhaul::compute {

struct DeviceCodec::Form {
  absl::string_view codec;
  absl::Status (CodecKernels::*encode)(const DeviceSpan&, uint8_t*) const;
  absl::Status (CodecKernels::*decode)(const uint8_t*, const DeviceSpan&, uint32_t*) const;
};

const DeviceCodec::Form DeviceCodec::kForms[] = {
    {"none", &CodecKernels::EncodeNone, &CodecKernels::DecodeNone},
    {"bf16", &CodecKernels::EncodeBf16, &CodecKernels::DecodeBf16},
    {"int8", &CodecKernels::EncodeInt8, &CodecKernels::DecodeInt8},
};

std::optional<DeviceCodec> DeviceCodec::Find(const Backend& backend,
                                             const compression::Codec& codec) {
  for (const Form& form : kForms) {
    if (form.codec == codec.name()) return DeviceCodec(backend, codec, form);
  }
  return std::nullopt;
}

absl::Status DeviceCodec::Check(const DeviceSpan& values, const void* bytes) {
  constexpr uintptr_t kAlignment = 16;  // what kernels move at once
  LH_CHECK(reinterpret_cast<uintptr_t>(bytes) % kAlignment == 0, "bytes that are not aligned");
  if (values.element != Element::kFloat64) return absl::OkStatus();
  return absl::InvalidArgumentError("codecs are for floats and bfloat16s, not for doubles");
}

absl::Status DeviceCodec::Encode(const DeviceSpan& values, void* bytes) const {
  LH_RETURN_IF_ERROR(Check(values, bytes));
  if (values.elements == 0) return absl::OkStatus();
  return (kernels_->*form_->encode)(values, static_cast<uint8_t*>(bytes));
}

absl::Status DeviceCodec::Decode(const void* bytes, const DeviceSpan& values,
                                 uint32_t* damaged) const {
  LH_RETURN_IF_ERROR(Check(values, bytes));
  if (values.elements == 0) return absl::OkStatus();
  return (kernels_->*form_->decode)(static_cast<const uint8_t*>(bytes), values, damaged);
}

}  // namespace longhaul::compute
