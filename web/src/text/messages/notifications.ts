/** The texts of notifications, of their settings, and of the page without its host. */

import { type Language, texts } from './language';

const all = {
  en: {
    waiting: 'Waiting for you',
    finished: 'Finished',
    failed: 'Failed',
    someSession: 'A session',
    test: 'Notifications work on this device.',
    open: 'Open',
  },
  de: {
    waiting: 'Wartet auf dich',
    finished: 'Fertig',
    failed: 'Fehlgeschlagen',
    someSession: 'Eine Sitzung',
    test: 'Mitteilungen funktionieren auf diesem Gerät.',
    open: 'Öffnen',
  },
};

export type NotificationTexts = (typeof all)['en'];

/** The texts of notifications. The service worker chooses the language by the message, since it has no stored choice. */
export function notificationTexts(language: Language): NotificationTexts {
  return all[language];
}

export const notifications = texts({
  en: {
    title: 'Notifications',
    about: 'Grove tells you when an agent needs you, also while this page is closed.',
    thisDevice: 'This device',
    turnOn: 'Turn on',
    turnOff: 'Turn off',
    isOn: 'On: this device is told, also while the page is closed.',
    isOnPage: 'On while this page is open. Your browser gave no push subscription, so a closed page is not told.',
    isOff: 'Off',
    working: 'One moment …',
    blocked:
      'Your browser blocks notifications of this page. Allow them in the settings of the site, beside the address.',
    insecure: 'Notifications need an address that begins with https://. docs/phone.md shows how a phone gets one.',
    install:
      'On an iPhone or iPad, first add this page to the home screen: “Share”, then “Add to Home Screen”. Then open it from there.',
    unsupported: 'This browser has no notifications.',
    noService: 'This host sends no notifications. Update it, or look into its log.',
    events: 'Tell me when',
    eventWaiting: 'an agent asks for a permission or has a question',
    eventFinished: 'a turn has finished',
    eventFailed: 'a turn has failed',
    quiet: 'Quiet hours',
    quietOn: 'Do not tell me at night',
    quietFrom: 'From',
    quietTo: 'to',
    quietAbout: 'What still waits in the morning is told then.',
    sendTest: 'Send a test',
    testSent: 'The test is on its way.',
    testFailed: (reason: string) => `The test was not sent: ${reason}`,
    changeFailed: (reason: string) => `That did not work: ${reason}`,
    devices: 'Devices that are told',
    noDevices: 'No device is told.',
    here: 'this device',
    since: (date: string) => `since ${date}`,
    remove: 'Remove',
    removeDevice: (name: string) => `Remove ${name}`,
    unnamed: 'A device',
    noApproval:
      'A notification cannot approve anything: what the agent wants to do is shown in the session, and a lock screen is no place to decide.',
    detail: (detail: string) =>
      detail === 'none'
        ? 'A message says only that something happened.'
        : detail === 'text'
          ? 'A message contains the title of the session, and the question or the name of the tool.'
          : 'A message contains the title of the session.',
    askTitle: 'Tell me when an agent needs me?',
    askYes: 'Turn on notifications',
    askNo: 'No, thanks',
    deviceName: (browser: string, system: string) => `${browser} on ${system}`,
    browser: 'Browser',
  },
  de: {
    title: 'Mitteilungen',
    about: 'Grove sagt dir, wenn ein Agent dich braucht, auch wenn diese Seite geschlossen ist.',
    thisDevice: 'Dieses Gerät',
    turnOn: 'Einschalten',
    turnOff: 'Ausschalten',
    isOn: 'Ein: Dieses Gerät bekommt Mitteilungen, auch wenn die Seite geschlossen ist.',
    isOnPage:
      'Ein, solange diese Seite offen ist. Dein Browser hat kein Push-Abonnement vergeben, deshalb bekommt eine geschlossene Seite nichts.',
    isOff: 'Aus',
    working: 'Einen Moment …',
    blocked:
      'Dein Browser blockiert Mitteilungen dieser Seite. Erlaube sie in den Einstellungen der Website, neben der Adresse.',
    insecure:
      'Mitteilungen brauchen eine Adresse, die mit https:// beginnt. docs/phone.md zeigt, wie ein Telefon eine bekommt.',
    install:
      'Füge diese Seite auf einem iPhone oder iPad zuerst zum Home-Bildschirm hinzu: „Teilen“, dann „Zum Home-Bildschirm“. Öffne sie danach von dort.',
    unsupported: 'Dieser Browser hat keine Mitteilungen.',
    noService: 'Dieser Host sendet keine Mitteilungen. Aktualisiere ihn oder sieh in sein Log.',
    events: 'Sag mir Bescheid, wenn',
    eventWaiting: 'ein Agent um Erlaubnis bittet oder eine Frage hat',
    eventFinished: 'ein Durchgang fertig ist',
    eventFailed: 'ein Durchgang fehlgeschlagen ist',
    quiet: 'Ruhezeit',
    quietOn: 'Nachts nicht stören',
    quietFrom: 'Von',
    quietTo: 'bis',
    quietAbout: 'Was am Morgen noch wartet, wird dann mitgeteilt.',
    sendTest: 'Test senden',
    testSent: 'Der Test ist unterwegs.',
    testFailed: (reason: string) => `Der Test wurde nicht gesendet: ${reason}`,
    changeFailed: (reason: string) => `Das ging nicht: ${reason}`,
    devices: 'Geräte, die Mitteilungen bekommen',
    noDevices: 'Kein Gerät bekommt Mitteilungen.',
    here: 'dieses Gerät',
    since: (date: string) => `seit ${date}`,
    remove: 'Entfernen',
    removeDevice: (name: string) => `${name} entfernen`,
    unnamed: 'Ein Gerät',
    noApproval:
      'Eine Mitteilung kann nichts erlauben: Was der Agent tun will, zeigt die Sitzung, und ein Sperrbildschirm ist kein Ort für eine Entscheidung.',
    detail: (detail: string) =>
      detail === 'none'
        ? 'Eine Nachricht sagt nur, dass etwas passiert ist.'
        : detail === 'text'
          ? 'Eine Nachricht enthält den Titel der Sitzung und die Frage oder den Namen des Werkzeugs.'
          : 'Eine Nachricht enthält den Titel der Sitzung.',
    askTitle: 'Soll ich Bescheid sagen, wenn ein Agent dich braucht?',
    askYes: 'Mitteilungen einschalten',
    askNo: 'Nein, danke',
    deviceName: (browser: string, system: string) => `${browser} auf ${system}`,
    browser: 'Browser',
  },
});
