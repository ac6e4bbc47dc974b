/* Machines and the memories that they work in: a described machine, the host that it hangs on, that
 * one's host … */
#include "hw/hw.h"
#include <math.h>

tarn_machines tarn_hw_machines(const tarn_hw *hw) {
  tarn_machines m = {0};
  for (const tarn_hw *h = hw; h && m.n < TARN_HW_MACHINES; h = h->host) m.n++;
  for (uint32_t i = m.n; i-- > 0; hw = hw->host) m.hw[i] = hw;
  for (uint32_t i = 0; i < m.n; i++) m.place[i] = i && m.hw[i]->link.send == 0 ? m.place[i - 1] : i;
  return m;
}

double tarn_hw_copy_seconds(const tarn_machines *m, uint32_t from, uint32_t to, double bytes) {
  uint32_t outer = from < to ? from : to, inner = from < to ? to : from;
  if (from == to) return 0;
  if (m->place[inner] != inner || m->place[inner - 1] != outer) return INFINITY;
  return tarn_hw_link_seconds(&m->hw[inner]->link, from < to, bytes);
}
double tarn_hw_link_seconds(const tarn_hw_link *l, bool send, double bytes) {
  return l->send > 0 ? l->start + l->latency + bytes / (send ? l->send : l->receive) : 0;
}
