// Kernels whose elements do not depend on each other. Included through kernel_table.h.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ELEMENTWISE_KERNELS_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ELEMENTWISE_KERNELS_H_

#include "compute/backend/cpu/simd/exponential.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/backend/cpu/simd/lanes.h"

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

template <typename T>
void AddRow(const T* a, const T* b, T* output, int64_t n) {
  ForLanes(n, [&](int64_t i, auto count) {
    Store(output + i, Load(a + i, count, T{0}) + Load(b + i, count, T{0}), count);
  });
}

template <typename T>
void ScaleRow(const T* input, T factor, T* output, int64_t n) {
  const Lanes<T> factors = Fill(factor);
  ForLanes(n, [&](int64_t i, auto count) {
    Store(output + i, Load(input + i, count, T{0}) * factors, count);
  });
}

// GELU as x * sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3): the same function as the form with
// tanh, without its cancellation for negative x. Beyond +-32 the sigmoid is 0 or 1 in float and in
// double; clamping there keeps u and its derivative finite.
template <typename T>
struct GeluParts {
  static constexpr T kTwiceRoot = static_cast<T>(1.5957691216057307117597842397375);
  static constexpr T kCubic = static_cast<T>(0.044715);

  Register<T> sigmoid;
  Register<T> slope;  // derivative of 2 u

  explicit inline __attribute__((always_inline)) GeluParts(Register<T> x) {
    x = x < Splat<T>(-32) ? Splat<T>(-32) : x;
    x = x > Splat<T>(32) ? Splat<T>(32) : x;
    const Register<T> square = x * x * kCubic;
    sigmoid = T{1} / (Exponential<T>(x * (square + T{1}) * -kTwiceRoot) + T{1});
    slope = (square * T{3} + T{1}) * kTwiceRoot;
  }
};

template <typename T>
void Gelu(const T* input, T* output, int64_t n) {
  ForLanes(n, [&](int64_t i, auto count) {
    const auto function = [](Register<T> x) { return x * GeluParts<T>(x).sigmoid; };
    Store(output + i, Map<T>(function, Load(input + i, count, T{0})), count);
  });
}

template <typename T>
void GeluGradient(const T* input, const T* output_gradient, T* input_gradient, int64_t n) {
  ForLanes(n, [&](int64_t i, auto count) {
    const auto function = [](Register<T> x, Register<T> gradient) {
      const GeluParts<T> parts(x);
      const Register<T> tail = x * parts.slope * (T{1} - parts.sigmoid);
      return gradient * (parts.sigmoid * (tail + T{1}));
    };
    Store(input_gradient + i,
          Map<T>(function, Load(input + i, count, T{0}), Load(output_gradient + i, count, T{0})),
          count);
  });
}

// silu(gate) = gate * sigmoid(gate). exp overflows to infinity and the sigmoid to 0.
template <typename T>
inline __attribute__((always_inline)) Register<T> Sigmoid(Register<T> x) {
  return T{1} / (Exponential<T>(-x) + T{1});
}

template <typename T>
void SwiGlu(const T* gate, const T* up, T* output, int64_t n) {
  ForLanes(n, [&](int64_t i, auto count) {
    const auto function = [](Register<T> g, Register<T> u) { return g * Sigmoid<T>(g) * u; };
    Store(output + i, Map<T>(function, Load(gate + i, count, T{0}), Load(up + i, count, T{0})),
          count);
  });
}

template <typename T>
void SwiGluGradient(const T* gate, const T* up, const T* output_gradient, T* gate_gradient,
                    T* up_gradient, int64_t n) {
  ForLanes(n, [&](int64_t i, auto count) {
    const Lanes<T> gates = Load(gate + i, count, T{0}), ups = Load(up + i, count, T{0});
    const Lanes<T> gradients = Load(output_gradient + i, count, T{0});
    const Lanes<T> sigmoids = Map<T>([](Register<T> x) { return Sigmoid<T>(x); }, gates);
    const Lanes<T> slopes = Map<T>(
        [](Register<T> g, Register<T> s) { return s * (g * (T{1} - s) + T{1}); }, gates, sigmoids);
    Store(gate_gradient + i, gradients * ups * slopes, count);
    Store(up_gradient + i, gradients * (gates * sigmoids), count);
  });
}

template <typename T>
void Rotate(const T* cosines, const T* sines, T turn, const T* input, T* output, int64_t n) {
  const Lanes<T> turns = Fill(turn);
  ForLanes(n, [&](int64_t i, auto count) {
    const Lanes<T> cosine = Load(cosines + i, count, T{0});
    const Lanes<T> sine = Load(sines + i, count, T{0}) * turns;
    const Lanes<T> x = Load(input + i, count, T{0}), y = Load(input + n + i, count, T{0});
    Store(output + i, x * cosine - y * sine, count);
    Store(output + n + i, y * cosine + x * sine, count);
  });
}

inline float SquareRoot(float x) { return __builtin_sqrtf(x); }
inline double SquareRoot(double x) { return __builtin_sqrt(x); }

// A plain loop, which the compiler vectorises: the language has no square root of registers.
template <typename T>
void AdamWRow(const AdamWFactors<T>& factors, const T* __restrict gradient, T* __restrict weights,
              T* __restrict first_moment, T* __restrict second_moment, int64_t n) {
  const AdamWFactors<T> f = factors;
  for (int64_t i = 0; i < n; ++i) {
    const T g = gradient[i] * f.gradient_scale;
    const T first = first_moment[i] + f.one_minus_beta1 * (g - first_moment[i]);
    const T second = second_moment[i] * f.beta2 + f.one_minus_beta2 * g * g;
    const T denominator = SquareRoot(second) / f.root_bias_correction2 + f.epsilon;
    first_moment[i] = first;
    second_moment[i] = second;
    weights[i] = weights[i] * f.decay - f.step_size * (first / denominator);
  }
}

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ELEMENTWISE_KERNELS_H_
