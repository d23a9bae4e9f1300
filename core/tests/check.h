// The tests' own check: prints the place and the expression, and makes the program exit with 1.
//   CHECK(condition);  CHECK_THROWS(expression);  int main() { ...; return test_result(); }
#pragma once

#include <cstdio>
#include <exception>

inline int failed_checks = 0;

inline int test_result() {
    if (failed_checks) std::fprintf(stderr, "%d checks failed\n", failed_checks);
    return failed_checks ? 1 : 0;
}

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            std::fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            ++failed_checks;                                                             \
        }                                                                                \
    } while (false)

#define CHECK_THROWS(expression)                                                                 \
    do {                                                                                         \
        bool thrown = false;                                                                     \
        try {                                                                                    \
            (void)(expression);                                                                  \
        } catch (const std::exception&) {                                                        \
            thrown = true;                                                                       \
        }                                                                                        \
        if (!thrown) {                                                                           \
            std::fprintf(stderr, "%s:%d: did not throw: %s\n", __FILE__, __LINE__, #expression); \
            ++failed_checks;                                                                     \
        }                                                                                        \
    } while (false)
