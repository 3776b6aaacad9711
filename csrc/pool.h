// Threads that help with jobs cut into phases of small items.
//
// A phase is over when its items are done, not when every thread has come by: a thread that
// the system has put aside delays the others by one item at most, and skips what it missed.
// A job therefore belongs to all who may still look at it (shared_ptr), and the caller
// returns as soon as the last item is done.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace mezzotint {

void relax(int spins);  // one turn of waiting: pause at first, then yield the core

class Job {
 public:
  Job(int phases, int threads) : threads_(threads), done_(phases), next_(phases * threads) {}
  virtual ~Job() = default;

  // Every thread runs this; it is a sequence of share() calls, the same in every thread.
  virtual void work(int thread) = 0;

 protected:
  // Phase `phase`: range(first, last) over [0, count) in chunks; returns when all are done.
  // A thread takes its own share first, the same part of every phase, so that what it wrote
  // is still near it; then it helps the others. While it waits it brings what the next phase
  // reads first (`next`) into its cache.
  template <class Fn>
  void share(int phase, int thread, int count, int chunk, Fn&& range,
             const uint8_t* next = nullptr) {
    for (int i = 0; i < threads_; ++i) {
      const int owner = (thread + i) % threads_;
      const int start = int64_t(count) * owner / threads_;
      const int end = int64_t(count) * (owner + 1) / threads_;
      std::atomic<int>& taken = next_[phase * threads_ + owner].value;
      for (int at; (at = start + taken.fetch_add(chunk, std::memory_order_relaxed)) < end;) {
        const int last = at + chunk < end ? at + chunk : end;
        range(at, last);
        done_[phase].value.fetch_add(last - at, std::memory_order_acq_rel);
      }
    }
    for (int spins = 0; done_[phase].value.load(std::memory_order_acquire) < count; ++spins) {
      if (next && spins < kAheadLines) __builtin_prefetch(next + 64 * spins);
      relax(spins);
    }
  }

 private:
  static constexpr int kAheadLines = 2048;  // 128 KiB, well inside a second-level cache

  struct alignas(64) Counter {
    std::atomic<int> value{0};
  };
  const int threads_;
  std::vector<Counter> done_, next_;
};

class Pool {
 public:
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }

  // Works on `job` with all threads; returns when it is done. Callers take turns. A thread
  // that was put aside may look at the job a little longer, but finds no item left.
  void run(std::shared_ptr<Job> job);

  // Waits until no thread looks at a job: before what jobs point to is freed.
  void quiet();

 private:
  void help(int thread);
  std::shared_ptr<Job> next_job(uint32_t& seen);

  const int threads_;
  std::mutex turn_;
  std::mutex mutex_;  // guards job_, and sleeping
  std::condition_variable wake_;
  std::shared_ptr<Job> job_;
  std::atomic<uint32_t> number_{0};
  bool stop_ = false;
  int sleepers_ = 0;
  std::atomic<int> helping_{0};  // workers inside a job; raised under mutex_
  std::vector<std::thread> workers_;
};

// each(i) for i in [0, count), on all threads.
template <class Fn>
void parallel(Pool& pool, int count, Fn each) {
  struct Loop : Job {
    Loop(int threads, int count, Fn& each) : Job(1, threads), count(count), each(each) {}
    void work(int thread) override {
      share(0, thread, count, 1, [this](int i, int) { each(i); });
    }
    int count;
    Fn& each;
  };
  pool.run(std::make_shared<Loop>(pool.threads(), count, each));
}

}  // namespace mezzotint
