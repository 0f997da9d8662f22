// For tests of run/: the run's file of the documentation, and what it means.
#ifndef LONGHAUL_RUN_TEST_SPEC_H_
#define LONGHAUL_RUN_TEST_SPEC_H_

#include "run/run_spec.h"

namespace longhaul::run {

inline constexpr char kExampleYaml[] = R"(name: first
model:    {family: gpt2, layers: 6, hidden: 128, heads: 4, context: 128, vocab: 256}
data:     {train: corpus.txt, tokenizer: bytes, validation_fraction: 0.1}
train:
  steps: 200
  global_batch: 32            # sequences per step
  micro_batch: 4              # sequences per micro-batch
  optimizer: {name: adamw, learning_rate: 1e-3, betas: [0.9, 0.95], weight_decay: 0.1, grad_clip: 1}
  schedule: {warmup_steps: 20, decay: cosine, min_learning_rate: 1.0e-4}
  seed: 1
  evaluate_every: 50          # over the whole validation split
pipeline: {stages: auto, schedule: 1f1b}
exchange: {codec: none}
checkpoint: {every: 100}
)";

inline RunSpec ExampleSpec() {
  RunSpec spec;
  spec.name = "first";
  spec.model = {"gpt2", 6, 128, 4, 128, 256, true};
  spec.data = {"corpus.txt", Tokenizer::kBytes, 0.1, ""};
  spec.train.steps = 200;
  spec.train.global_batch = 32;
  spec.train.micro_batch = 4;
  spec.train.optimizer = {"adamw", 1e-3, 0.9, 0.95, 1e-8, 0.1, 1.0};
  spec.train.schedule = {20, Decay::kCosine, 1e-4};
  spec.train.seed = 1;
  spec.train.evaluate_every = 50;
  spec.stages = 0;
  spec.schedule = "1f1b";
  spec.codec = "none";
  spec.checkpoint_every = 100;
  return spec;
}

}  // namespace longhaul::run

#endif  // LONGHAUL_RUN_TEST_SPEC_H_
