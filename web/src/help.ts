/** The overlay with all keys. */
import { byId, h } from "./dom";
import { KEYS } from "./keys";

export function openHelp(): void {
  const dialog = byId<HTMLDialogElement>("help");
  if (dialog.open) {
    dialog.close();
    return;
  }
  const groups = KEYS.map(([title, lines]) =>
    h(
      "section",
      {},
      h("h3", {}, title),
      h("dl", {}, ...lines.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    ),
  );
  dialog.replaceChildren(
    h(
      "div",
      { class: "help-head" },
      h("h2", { id: "help-title" }, "Keys"),
      h("button", { type: "button", class: "small", onclick: () => dialog.close() }, "Close"),
    ),
    h("div", { class: "help-groups" }, ...groups),
  );
  dialog.showModal();
}

export function closeHelp(): boolean {
  const dialog = byId<HTMLDialogElement>("help");
  if (!dialog.open) return false;
  dialog.close();
  return true;
}
