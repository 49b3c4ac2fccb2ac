// What all answers so far disclosed about anyone at most, from the ledger's questions alone.

import { sure } from "./about.js";
import { el, number, table } from "./dom.js";

const columnsOf = (lot) => (lot.columns.length ? lot.columns.join(", ") : "which half a person is in");

export function audited(found) {
  const rows = found.columns.filter((lot) => lot.distance_squared > 0)
    .map((lot) => [columnsOf(lot), sure(lot.rise), sure(lot.rise_adaptive)]);
  return [
    el("p", {}, `After ${number(found.answers)} of ${number(found.queries)} answers, no belief about a person has risen by more `
      + `than ${sure(found.worst.rise)} in log-odds, but with probability η = ${sure(found.eta)}; by no more than `
      + `${sure(found.worst.rise_adaptive)} if questions were chosen by answers. Promised for all answers: δ = ${sure(found.delta)}.`),
    found.lost ? el("p", { class: "small" }, `${number(found.lost)} lost answers are taken to have disclosed as much as answers can.`) : null,
    rows.length ? table(["asked about", "rise", "if chosen by answers"], rows, { right: [1, 2], label: "What the answers disclosed" }) : null,
  ].filter(Boolean);
}
