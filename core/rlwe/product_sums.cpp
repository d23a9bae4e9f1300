// product_sums of server.h: a loop over blocks of coefficients, each of which is a small matrix product.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "rlwe/server.h"
#include "threads.h"

namespace sphynx::rlwe {

namespace {
// The sums of one block after the other. What a block has of each ciphertext is copied to one place before all replies
// read it: where it was, every ciphertext is on a page of its own, and each reply would wait for each of them.
class BlockSums {
  public:
    BlockSums(const Weights& weights, const std::vector<const std::int32_t*>& inputs, std::size_t tiles,
              std::int32_t* out)
        : weights_(weights),
          inputs_(inputs),
          tiles_(tiles),
          out_(out),
          most_inputs_(std::min<std::size_t>(weights.inputs(), kLazyProducts)),
          most_tiles_(std::clamp<std::size_t>(kCopied / most_inputs_, 1, tiles)),
          copy_(most_tiles_ * most_inputs_ * 2 * kBlock) {}

    // task: prime-major.
    void add(std::size_t task) {
        for (std::size_t tile = 0; tile < tiles_; tile += most_tiles_) {
            const std::size_t tiles = std::min(most_tiles_, tiles_ - tile);
            for (std::size_t input = 0; input < weights_.inputs(); input += most_inputs_) {
                const std::size_t inputs = std::min(most_inputs_, weights_.inputs() - input);
                copy(task, tile, tiles, input, inputs);
                multiply(task, tile, tiles, input, inputs);
            }
        }
    }

  private:
    static constexpr std::size_t kCopied = 1024;  // ciphertexts whose parts are copied at a time: 128 KB
    static constexpr std::size_t kReplies = 8;    // that read all tiles before the next weights are read

    void copy(std::size_t task, std::size_t tile, std::size_t tiles, std::size_t input, std::size_t inputs) {
        for (std::size_t t = 0; t < tiles; ++t) {
            const std::int32_t* const* from = inputs_.data() + (tile + t) * weights_.inputs() + input;
            std::int32_t* first = copy_.data() + t * inputs * 2 * kBlock;
            std::int32_t* second = first + inputs * kBlock;
            for (std::size_t i = 0; i < inputs; ++i) {
                const std::int32_t* part = from[i] + task * 2 * kBlock;
                first = std::copy_n(part, kBlock, first);
                second = std::copy_n(part + kBlock, kBlock, second);
            }
        }
    }

    void multiply(std::size_t task, std::size_t tile, std::size_t tiles, std::size_t input,
                  std::size_t inputs) {
        const Params& params = weights_.params();
        const auto prime = static_cast<int>(task / params.blocks());
        const std::int32_t* weights = weights_.block(prime, task % params.blocks());
        const auto distinct = static_cast<std::size_t>(weights_.distinct());
        const std::size_t stride = sum_stride(params), weight_stride = weights_.inputs() * distinct;
        for (std::size_t reply = 0; reply < weights_.replies(); reply += kReplies) {
            for (std::size_t t = 0; t < tiles; ++t) {
                const std::size_t sum = (tile + t) * weights_.replies() + reply;
                const BlockProducts block{
                    .weights = weights + reply * weight_stride + input * distinct,
                    .weight_stride = weight_stride,
                    .distinct = weights_.distinct(),
                    .values = copy_.data() + t * inputs * 2 * kBlock,
                    .inputs = inputs,
                    .replies = std::min(kReplies, weights_.replies() - reply),
                    .adds = input > 0,
                    .out = out_ + 2 * sum * stride + task * kBlock,
                    .out_stride = stride,
                };
                kernels_.product_sums(block, params.modulus(prime));
            }
        }
    }

    const Kernels& kernels_ = best_kernels();
    const Weights& weights_;
    const std::vector<const std::int32_t*>& inputs_;
    std::size_t tiles_;
    std::int32_t* out_;
    std::size_t most_inputs_, most_tiles_;
    std::vector<std::int32_t> copy_;
};
}  // namespace

void product_sums(const Weights& weights, const std::vector<const std::int32_t*>& inputs, std::size_t tiles,
                  unsigned threads, std::int32_t* out) {
    const Params& params = weights.params();
    if (inputs.size() != tiles * weights.inputs())
        throw std::invalid_argument("the number of ciphertexts does not match the weights");
    parallel_ranges(params.blocks() * static_cast<std::size_t>(params.primes()), 8, threads,
                    [&](std::size_t begin, std::size_t end) {
                        BlockSums sums(weights, inputs, tiles, out);
                        for (std::size_t task = begin; task < end; ++task) sums.add(task);
                    });
}

}  // namespace sphynx::rlwe
