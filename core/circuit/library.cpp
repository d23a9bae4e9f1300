#include "circuit/library.h"

#include <array>
#include <bit>
#include <span>
#include <stdexcept>

#include "circuit/builder.h"
#include "crypto/sbox.h"

namespace sphynx::circuit {
namespace {

using Byte = std::array<Wire, 8>;
using State = std::array<Byte, 16>;  // byte 4 c + r is row r of column c

Byte substitute(const Byte& byte) {
    return crypto::sbox::substitute<Wire>(byte);
}

Byte add(const Byte& a, const Byte& b) {
    Byte sum;
    for (int bit = 0; bit < 8; ++bit) sum[bit] = a[bit] ^ b[bit];
    return sum;
}

// Multiplication by x modulo x^8 + x^4 + x^3 + x + 1.
Byte doubled(const Byte& a) {
    Byte result;
    for (int bit = 0; bit < 8; ++bit) {
        result[bit] = a[(bit + 7) % 8];
        if (bit == 1 || bit == 3 || bit == 4) result[bit] = result[bit] ^ a[7];
    }
    return result;
}

State add(const State& a, const State& b) {
    State sum;
    for (int i = 0; i < 16; ++i) sum[i] = add(a[i], b[i]);
    return sum;
}

State mix_columns(const State& a) {
    State mixed;
    for (int i = 0; i < 16; ++i) {
        const int column = i & ~3;
        const auto row = [&](int ahead) { return a[column + (i + ahead) % 4]; };
        mixed[i] = add(add(doubled(add(row(0), row(1))), row(1)), add(row(2), row(3)));
    }
    return mixed;
}

State next_round_key(const State& key, unsigned round_constant) {
    State next;
    for (int i = 0; i < 16; ++i) {
        Byte word = i < 4 ? substitute(key[12 + (i + 1) % 4]) : next[i - 4];
        if (i == 0) {
            for (int bit = 0; bit < 8; ++bit) {
                if (round_constant >> bit & 1) word[bit] = ~word[bit];
            }
        }
        next[i] = add(key[i], word);
    }
    return next;
}

State to_state(const Value& bits) {
    State state;
    for (int i = 0; i < 128; ++i) state[i / 8][i % 8] = bits[i];
    return state;
}

}  // namespace

Circuit relu_circuit(unsigned w, unsigned k, unsigned f) {
    if (w < 2 || w > k || k > 64 || f > w - 2) {
        throw std::invalid_argument("relu_circuit needs 2 <= w <= k <= 64 and f <= w - 2");
    }
    CircuitBuilder builder;
    const Value x_server = builder.input(w), x_client = builder.input(w), mask = builder.input(k);
    const Value x = builder.add(x_server, x_client);
    const Wire positive = ~x[w - 1];
    Value y(k, builder.constant(false));
    for (unsigned bit = f; bit + 1 < w; ++bit) y[bit - f] = positive & x[bit];
    return builder.finish({builder.subtract(y, mask)});
}

Circuit floor_circuit(unsigned w, unsigned k, unsigned f) {
    if (w < 2 || w > k || k > 64 || f >= w) {
        throw std::invalid_argument("floor_circuit needs 2 <= w <= k <= 64 and f < w");
    }
    CircuitBuilder builder;
    const Value x_server = builder.input(w), x_client = builder.input(w), mask = builder.input(k);
    const Value x = builder.add(x_server, x_client);
    Value y(k, x[w - 1]);  // the sign goes on to the ring's highest bit
    for (unsigned bit = f; bit < w; ++bit) y[bit - f] = x[bit];
    return builder.finish({builder.subtract(y, mask)});
}

Circuit label_circuit(unsigned classes, unsigned w, std::uint64_t margin) {
    if (classes < 2 || classes > 1u << 12 || w < 1 || w > 63 || margin >> w) {
        throw std::invalid_argument(
            "label_circuit needs 2 to 4096 classes, numbers of 1 to 63 bits and a margin of no more");
    }
    CircuitBuilder builder;
    const Value server = builder.input(classes * w), client = builder.input(classes * w);
    // As unsigned, in the same order: with the sign inverted.
    const auto score = [&](unsigned number) {
        const std::span<const Wire> own = std::span(server).subspan(number * w, w);
        Value x = builder.add(own, std::span(client).subspan(number * w, w));
        x[w - 1] = ~x[w - 1];
        return x;
    };
    Value best = score(0), second;
    Value label(std::bit_width(classes - 1), builder.constant(false));
    for (unsigned number = 1; number < classes; ++number) {
        const Value x = score(number);
        const Wire leads = builder.less_than(best, x);
        Value own;
        for (std::size_t bit = 0; bit < label.size(); ++bit)
            own.push_back(builder.constant(number >> bit & 1));
        label = builder.multiplex(leads, own, label);
        const Value before = best;
        best = builder.multiplex(leads, x, before);
        if (margin == 0) continue;
        Value smaller;
        for (unsigned bit = 0; bit < w; ++bit) smaller.push_back(x[bit] ^ before[bit] ^ best[bit]);
        second =
            number == 1 ? smaller : builder.multiplex(builder.less_than(second, smaller), smaller, second);
    }
    if (margin == 0) return builder.finish({label});
    Value least;
    for (unsigned bit = 0; bit < w; ++bit) least.push_back(builder.constant(margin >> bit & 1));
    return builder.finish({label, {~builder.less_than(builder.subtract(best, second), least)}});
}

Circuit adder_circuit(unsigned width) {
    if (width < 1 || width > 1u << 16)
        throw std::invalid_argument("adder_circuit: the width is 1 to 65536 bits");
    CircuitBuilder builder;
    const Value a = builder.input(width), b = builder.input(width);
    return builder.finish({builder.add(a, b)});
}

Circuit aes128_circuit() {
    CircuitBuilder builder;
    State key = to_state(builder.input(128));
    State state = add(to_state(builder.input(128)), key);
    unsigned round_constant = 1;
    for (int round = 1; round <= 10; ++round) {
        State shifted;
        for (int i = 0; i < 16; ++i) shifted[i] = substitute(state[(i + 4 * (i % 4)) % 16]);
        key = next_round_key(key, round_constant);
        round_constant = (round_constant << 1) ^ ((round_constant >> 7) * 0x11b);
        state = add(round < 10 ? mix_columns(shifted) : shifted, key);
    }
    Value out;
    for (const Byte& byte : state) out.insert(out.end(), byte.begin(), byte.end());
    return builder.finish({out});
}

}  // namespace sphynx::circuit
