#include <cstring>
#include <new>

#include "model.h"

namespace mezzotint {

Page::Page(int64_t bytes) : data_(static_cast<uint8_t*>(std::calloc(bytes, 1))) {
  if (!data_) throw std::bad_alloc();
}

// Pages for `slots` tokens; those from the first uncached slot on are this session's alone.
void Session::reserve(int slots) {
  const size_t pages = (slots + kPage - 1) / kPage;
  const int64_t bytes = model_->page_bytes();
  while (pages_.size() < pages) pages_.push_back(std::make_shared<Page>(bytes));
  for (size_t p = length_ / kPage; p < pages; ++p) {
    if (pages_[p].use_count() == 1) continue;
    auto own = std::make_shared<Page>(bytes);
    if (length_ > int(p) * kPage) std::memcpy(own->data(), pages_[p]->data(), bytes);
    pages_[p] = std::move(own);
  }
}

void Session::score(const std::vector<Session*>& sessions, std::vector<Part> parts, float* logits) {
  std::vector<std::vector<uint8_t*>> pages(sessions.size());
  for (size_t i = 0; i < sessions.size(); ++i) {
    Session& session = *sessions[i];
    session.last_rows_ = 0;
    session.reserve(session.length_ + parts[i].m);
    for (const auto& page : session.pages_) pages[i].push_back(page->data());
    parts[i].pages = pages[i].data();
    parts[i].cached = session.length_;
  }
  forward(*sessions[0]->model_, parts, logits);
  for (size_t i = 0; i < sessions.size(); ++i) sessions[i]->last_rows_ = parts[i].m;
}

void Session::keep(int count) {
  length_ += count;
  last_rows_ = 0;
}

void Session::truncate(int length) {
  length_ = length;
  last_rows_ = 0;
  pages_.resize((length + kPage - 1) / kPage);
}

void Session::save(uint8_t* out) const {
  const int64_t bytes = model_->page_bytes();
  for (size_t p = 0; p < pages_.size(); ++p) std::memcpy(out + p * bytes, pages_[p]->data(), bytes);
}

void Session::restore(const uint8_t* bytes, int64_t size, int length) {
  const int64_t each = model_->page_bytes(), pages = (int64_t(length) + kPage - 1) / kPage;
  if (length < 0 || pages * each != size) throw std::invalid_argument("restore: not of this model");
  pages_.clear();
  for (int64_t p = 0; p < pages; ++p) {
    pages_.push_back(std::make_shared<Page>(each));
    std::memcpy(pages_.back()->data(), bytes + p * each, each);
  }
  length_ = length;
  last_rows_ = 0;
}

}  // namespace mezzotint
