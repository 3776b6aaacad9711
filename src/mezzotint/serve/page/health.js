// Whether the server is there, told in the header; asked again only while it is away.
import { json } from "./api.js";
import { $, say } from "./dom.js";

const GAP = 1500; // milliseconds between tries
let model = null;
let trying = false;

/** The name of the model that the server offers. Throws Failure if it cannot be reached. */
export async function modelName() {
  return (model ??= (await json("/v1/models")).data[0].id);
}

/** Reach the server, however long it takes. */
export async function reach() {
  if (trying) return;
  trying = true;
  for (;;) {
    try {
      model = (await json("/v1/models")).data[0].id;
      show("here", "serverHere", { model });
      break;
    } catch (failure) {
      if (failure.status) break; // it is there, and refuses: a form asks for its key
      show("away", "serverAway");
      await new Promise((done) => setTimeout(done, GAP));
    }
  }
  trying = false;
}

function show(state, key, values) {
  const node = $("status");
  node.dataset.state = state;
  say(node, key, values);
}

document.addEventListener("away", reach); // one round of tries at a time
