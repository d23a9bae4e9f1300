// Drives a fuzz target where clang's libFuzzer is not at hand: mutates, keeps what reaches new code (gcc's
// -fsanitize-coverage=trace-pc), and on a failure writes the input beside. Takes libFuzzer's own flags:
//   fuzz_x [-runs=N] [-max_total_time=S] [-seed=N] [-artifact_prefix=PATH] [corpus folders or files]..
#include <sanitizer/common_interface_defs.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kPlaces = 1 << 16;
bool reached[kPlaces];
std::size_t reached_count = 0;
Bytes current;
std::string artifact_prefix;

void write_current() {
    const std::string name = artifact_prefix + "crash-" +
                             std::to_string(std::hash<std::string_view>{}(
                                 {reinterpret_cast<const char*>(current.data()), current.size()}));
    std::ofstream(name, std::ios::binary)
        .write(reinterpret_cast<const char*>(current.data()), static_cast<std::streamsize>(current.size()));
    std::fprintf(stderr, "the input is in %s\n", name.c_str());
}

[[noreturn]] void end_on_exception() {
    write_current();
    std::_Exit(77);
}

Bytes mutated(const std::vector<Bytes>& corpus, std::mt19937_64& random) {
    const auto below = [&](std::size_t limit) { return limit ? random() % limit : 0; };
    Bytes bytes = corpus[below(corpus.size())];
    for (std::size_t left = 1 + below(4); left > 0; --left) {
        const std::size_t at = below(bytes.size() + 1),
                          length = below(std::min<std::size_t>(bytes.size() - at, 16) + 1);
        const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        switch (below(6)) {
            case 0:
                if (at < bytes.size()) bytes[at] ^= static_cast<std::uint8_t>(1u << below(8));
                break;
            case 1:
                if (at < bytes.size()) bytes[at] = static_cast<std::uint8_t>(random());
                break;
            case 2:
                bytes.erase(place, place + static_cast<std::ptrdiff_t>(length));
                break;
            case 3:
                bytes.insert(place, 1 + below(8), static_cast<std::uint8_t>(random()));
                break;
            case 4: {
                const Bytes piece(place, place + static_cast<std::ptrdiff_t>(length));
                bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1)),
                             piece.begin(), piece.end());
                break;
            }
            default: {
                const Bytes& other = corpus[below(corpus.size())];
                const auto from = static_cast<std::ptrdiff_t>(below(other.size() + 1));
                bytes.resize(at);
                bytes.insert(bytes.end(), other.begin() + from, other.end());
            }
        }
    }
    if (bytes.size() > std::size_t{1} << 17) bytes.resize(std::size_t{1} << 17);
    return bytes;
}

void run(const Bytes& bytes) {
    current = bytes;
    LLVMFuzzerTestOneInput(current.data(), current.size());
}

void read_into(const std::filesystem::path& path, std::vector<Bytes>& corpus) {
    if (std::filesystem::is_directory(path)) {
        for (const auto& entry : std::filesystem::directory_iterator(path)) read_into(entry.path(), corpus);
        return;
    }
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace

extern "C" __attribute__((no_sanitize("address", "undefined"))) void __sanitizer_cov_trace_pc() {
    const auto place = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
    bool& here = reached[(place ^ place >> 16) % kPlaces];
    reached_count += !here;
    here = true;
}

int main(int count, char** words) {
    std::uint64_t runs = ~std::uint64_t{0}, seed = 1;
    double seconds = 1e9;
    std::vector<Bytes> corpus = {{}};
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        const std::string value = word.substr(word.find('=') + 1);
        if (word.starts_with("-runs="))
            runs = std::stoull(value);
        else if (word.starts_with("-max_total_time="))
            seconds = std::stod(value);
        else if (word.starts_with("-seed="))
            seed = std::stoull(value);
        else if (word.starts_with("-artifact_prefix="))
            artifact_prefix = value;
        else if (!word.starts_with("-"))
            read_into(word, corpus);
    }
    __sanitizer_set_death_callback(write_current);
    std::set_terminate(end_on_exception);
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < corpus.size(); ++i) run(corpus[i]);
    const auto start = std::chrono::steady_clock::now();
    std::uint64_t done = corpus.size();
    for (; done < runs; ++done) {
        if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds) break;
        const std::size_t before = reached_count;
        const Bytes bytes = mutated(corpus, random);
        run(bytes);
        if (reached_count > before) corpus.push_back(bytes);
    }
    std::fprintf(stderr, "Done %llu runs, %zu places reached, %zu inputs kept\n",
                 static_cast<unsigned long long>(done), reached_count, corpus.size());
}
