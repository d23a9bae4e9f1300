#include "rlwe/params.h"

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "rlwe/bitpack.h"
#include "rlwe/sample.h"

namespace sphynx::rlwe {

int max_modulus_bits(int n) {
    switch (n) {
        case 4096:
            return 106;
        case 8192:
            return 214;
        default:
            return 0;
    }
}

std::shared_ptr<const Params> Params::for_ring(int ring_bits) {
    if (ring_bits <= 48) return make(4096, ring_bits, {28, 28, 27, 23}, ring_bits <= 39 ? 3 : 4);
    return make(8192, ring_bits, {28, 28, 28, 28, 28}, 4);
}

std::shared_ptr<const Params> Params::make(int n, int ring_bits, const std::vector<int>& prime_bits,
                                           int reply_primes) {
    return std::shared_ptr<const Params>(new Params(n, ring_bits, prime_bits, reply_primes));
}

Params::Params(int n, int ring_bits, const std::vector<int>& prime_bits, int reply_primes)
    : n_(n), ring_bits_(ring_bits), reply_primes_(reply_primes) {
    if (max_modulus_bits(n) == 0)
        throw std::invalid_argument("RLWE degree " + std::to_string(n) + " is not offered; use 4096 or 8192");
    if (ring_bits < kMinRingBits || ring_bits > kMaxRingBits)
        throw std::invalid_argument("ring width must be 8..64 bits");
    if (prime_bits.empty() || prime_bits.size() > 7)
        throw std::invalid_argument("one to seven RNS primes are supported");
    for (const int bits : prime_bits) {
        if (bits < 20 || bits > 28) throw std::invalid_argument("RNS primes have 20 to 28 bits");
    }
    const int total = std::accumulate(prime_bits.begin(), prime_bits.end(), 0);
    if (total > max_modulus_bits(n)) {
        throw std::invalid_argument("a modulus of " + std::to_string(total) + " bits at degree " +
                                    std::to_string(n) + " is below 128-bit security; the limit is " +
                                    std::to_string(max_modulus_bits(n)) + " bits");
    }
    if (reply_primes < 1 || static_cast<std::size_t>(reply_primes) > prime_bits.size()) {
        throw std::invalid_argument("a reply uses between one and all of the primes");
    }
    for (std::size_t i = 0; i < prime_bits.size(); ++i) {
        int same_size_before = 0;
        for (std::size_t j = 0; j < i; ++j) same_size_before += prime_bits[j] == prime_bits[i];
        std::int32_t primes[8];
        largest_ntt_primes(prime_bits[i], n, same_size_before + 1, primes);
        tables_.emplace_back(primes[same_size_before], n);
    }
    for (int degree = n / 2; degree >= kMinDegree; degree /= 2) {
        std::vector<NttTable>& tables = subring_tables_.emplace_back();
        for (const NttTable& whole : tables_) tables.emplace_back(whole.modulus.p(), degree);
    }
    if (log2_reply_modulus() < ring_bits + 8)
        throw std::invalid_argument("the reply modulus is too small for this ring width");
}

const NttTable& Params::subring_table(int i, int degree) const {
    if (degree == n_) return table(i);
    std::size_t halvings = 0;
    while ((n_ / 2 >> halvings) > degree) ++halvings;
    return subring_tables_[halvings][static_cast<std::size_t>(i)];
}

int Params::bits_of_first(int count) const {
    int bits = 0;
    for (int i = 0; i < count; ++i) bits += modulus(i).bits();
    return bits;
}

double Params::log2_reply_modulus() const {
    double bits = 0;
    for (int i = 0; i < reply_primes_; ++i) bits += std::log2(modulus(i).p());
    return bits;
}

std::size_t Params::upload_bytes() const {
    std::size_t bytes = kSeedBytes;
    for (const NttTable& t : tables_) bytes += packed_bytes(static_cast<std::size_t>(n_), t.modulus.bits());
    return bytes;
}

std::size_t Params::public_key_bytes() const {
    return upload_bytes();
}

std::size_t Params::reply_bytes(std::size_t used) const {
    std::size_t bytes = 0;
    for (int i = 0; i < reply_primes_; ++i) {
        bytes += packed_bytes(static_cast<std::size_t>(n_), modulus(i).bits()) +
                 packed_bytes(used, modulus(i).bits());
    }
    return bytes;
}

}  // namespace sphynx::rlwe
