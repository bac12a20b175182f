/** The story page: every component of the page in its states, with recorded data and without a host. `npm run stories` serves it. */

import { mount } from 'svelte';
import '../src/app.css';
import Gallery from './Gallery.svelte';

mount(Gallery, { target: document.getElementById('app')! });
